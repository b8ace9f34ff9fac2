package systemd

import (
	"fmt"
	"sync"
	"time"
)

// state is the active state of a service.
type state string

const (
	inactive     state = "inactive"
	activating   state = "activating"
	active       state = "active"
	deactivating state = "deactivating"
	failed       state = "failed"
)

// running reports whether something of the service is under way.
func (s state) running() bool { return s == activating || s == active || s == deactivating }

// service is one loaded unit and the run that is under way.
type service struct {
	manager *Manager

	mu     sync.Mutex
	unit   *unit
	state  state
	result string
	pid    int
	starts []time.Time
	// run is nil while nothing runs.
	run *run
}

func newService(m *Manager, u *unit) *service {
	return &service{manager: m, unit: u, state: inactive, result: "success"}
}

func (s *service) load(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unit = u
}

func (s *service) settings() *unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unit
}

func (s *service) current() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *service) set(st state, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = st
	if result != "" {
		s.result = result
	}
}

func (s *service) resetFailed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts = nil
	if s.state == failed {
		s.state, s.result = inactive, "success"
	}
}

func (s *service) describe() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%s - %s\n   Active: %s (%s)\n Main PID: %d\n", s.unit.name, s.unit.description, s.state, s.result, s.pid)
}

// start begins a run unless there is one, and returns where its start is reported.
func (s *service) start() <-chan error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		already := make(chan error, 1)
		already <- nil
		return already
	}
	r := &run{service: s, stop: make(chan struct{}), done: make(chan struct{}), started: make(chan error, 1)}
	s.run, s.state = r, activating
	go r.loop()
	return r.started
}

// stop ends the run, if any; the channel is closed when it has ended.
func (s *service) stop() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		if s.state != failed {
			s.state = inactive
		}
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	s.state = deactivating
	r := s.run
	r.once.Do(func() { close(r.stop) })
	return r.done
}

// mayStart counts a start against the start limit.
func (s *service) mayStart(u *unit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.startInterval == infinite || u.startBurst <= 0 {
		return true
	}
	now := time.Now()
	kept := s.starts[:0]
	for _, at := range s.starts {
		if now.Sub(at) < u.startInterval {
			kept = append(kept, at)
		}
	}
	s.starts = kept
	if len(kept) >= u.startBurst {
		return false
	}
	s.starts = append(s.starts, now)
	return true
}
