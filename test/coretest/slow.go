package coretest

import (
	"net/http"
	"path"
	"slices"
	"sync"
	"testing"
)

// SlowList delays lists and watches of whole kinds.
type SlowList struct {
	resources []string
	opened    chan struct{}
	once      sync.Once

	mutex sync.Mutex
	held  int
}

// SlowLists has each list of the resources, and each watch, that a core begins from now on wait until Open; also with the
// target clusters of MortalTarget. Those that are under way continue, so that a core after Restart has read nothing of them.
func (c *Core) SlowLists(t *testing.T, resources ...string) *SlowList {
	t.Helper()
	slow := &SlowList{resources: resources, opened: make(chan struct{})}
	c.life.slow(slow)
	t.Cleanup(slow.Open)
	return slow
}

// Open releases all of them.
func (s *SlowList) Open() { s.once.Do(func() { close(s.opened) }) }

// Held counts those that wait, or have waited.
func (s *SlowList) Held() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.held
}

// wait holds a request that reads one of the kinds, until it is released or its caller has gone.
func (s *SlowList) wait(request *http.Request) {
	if s == nil || request.Method != http.MethodGet || !slices.Contains(s.resources, path.Base(request.URL.Path)) {
		return
	}
	s.mutex.Lock()
	s.held++
	s.mutex.Unlock()
	select {
	case <-s.opened:
	case <-request.Context().Done():
	}
}
