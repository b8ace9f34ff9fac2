package instance

import (
	"sync"

	"millwright.dev/providers/driver"
)

// stops remembers of spot instances that have stopped whether Compute Engine has taken them back, so that not each list asks again.
type stops struct {
	mu     sync.Mutex
	scopes map[driver.Scope]map[string]stop
}

// stop is one time that an instance has stopped.
type stop struct {
	// at is the time, as the instance has it: a later one is another stop.
	at string
	// taken is true if Compute Engine has taken it back.
	taken bool
	// asked is how many complete answers did not say so.
	asked int
}

// askedEnough is after how many answers an instance counts as stopped by a user: the operation that shows it may be listed later than its
// effect.
const askedEnough = 3

// of returns what is known of an instance that stopped at a time, and whether it need not be asked for any more.
func (s *stops) of(scope driver.Scope, id, at string) (taken, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.scopes[scope][id]
	if found.at != at {
		return false, false
	}
	return found.taken, found.taken || found.asked >= askedEnough
}

// note remembers an answer.
func (s *stops) note(scope driver.Scope, id, at string, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scopes == nil {
		s.scopes = map[driver.Scope]map[string]stop{}
	}
	if s.scopes[scope] == nil {
		s.scopes[scope] = map[string]stop{}
	}
	found := s.scopes[scope][id]
	if found.at != at {
		found = stop{at: at}
	}
	found.taken, found.asked = taken, found.asked+1
	s.scopes[scope][id] = found
}

// keep forgets the instances that are not among those that a whole list of the scope shows stopped.
func (s *stops) keep(scope driver.Scope, stopped map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.scopes[scope] {
		if _, still := stopped[id]; !still {
			delete(s.scopes[scope], id)
		}
	}
	if len(s.scopes[scope]) == 0 {
		delete(s.scopes, scope)
	}
}
