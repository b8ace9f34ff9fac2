package systemd

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/clouds/vm/spawn"
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

// running tells whether something of the service is under way.
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

// run is the life of a service from a start to the end, automatic restarts included.
type run struct {
	service *service
	stop    chan struct{}
	once    sync.Once
	done    chan struct{}
	// started receives the result of the start, once.
	started     chan error
	startedOnce sync.Once
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

// start begins a run unless there is one, and returns where its start is told.
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

func (r *run) tell(err error) { r.startedOnce.Do(func() { r.started <- err }) }

func (r *run) stopping() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// loop starts the service again and again as Restart= says.
func (r *run) loop() {
	s := r.service
	end := inactive
	for {
		u := s.settings()
		if !s.mayStart(u) {
			s.manager.say("systemd: %s: Start request repeated too quickly.", u.name)
			s.set(failed, "start-limit-hit")
			end = failed
			break
		}
		result := r.attempt(u)
		if result != "success" {
			s.manager.say("systemd: %s: Failed with result '%s'.", u.name, result)
			r.tell(errors.Errorf("Job for %s failed with result '%s'", u.name, result))
		}
		if r.stopping() {
			s.set(inactive, "success")
			break
		}
		again := u.restart == "always" || u.restart == "on-failure" && result != "success"
		if !again {
			if result != "success" {
				end = failed
			}
			s.set(end, result)
			break
		}
		s.set(activating, result)
		if !r.pause(u.restartSec) {
			break
		}
	}
	s.mu.Lock()
	s.run, s.state, s.pid = nil, end, 0
	s.mu.Unlock()
	r.tell(errors.Errorf("Job for %s failed", s.settings().name))
	close(r.done)
}

// pause waits before an automatic restart; it is false when the service is stopped meanwhile.
func (r *run) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.stop:
		return false
	}
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

// attempt runs the service one time and returns its result in systemd's words.
func (r *run) attempt(u *unit) string {
	x, err := r.service.manager.prepare(u)
	if err != nil {
		r.service.manager.say("systemd: %s: %v", u.name, err)
		return "resources"
	}
	defer x.close()
	defer x.killGroup()
	for _, c := range u.startPre {
		if result := r.runCommand(x, u, c); result != "success" {
			return result
		}
	}
	if u.kind == "oneshot" {
		return r.runOneshot(x, u)
	}
	child, err := x.start(u.start[0])
	if err != nil {
		r.service.manager.say("systemd: %s: %v", u.name, err)
		return "exit-code"
	}
	r.service.mu.Lock()
	r.service.pid = child.PID()
	if r.service.state == activating {
		r.service.state = active
	}
	r.service.mu.Unlock()
	for _, c := range u.startPost {
		if result := r.runCommand(x, u, c); result != "success" {
			child.Signal(syscall.SIGKILL)
			return result
		}
	}
	r.tell(nil)
	return r.await(x, u, child, u.start[0], u.runtimeMax)
}

func (r *run) runOneshot(x *execution, u *unit) string {
	for _, c := range u.start {
		if result := r.runCommand(x, u, c); result != "success" {
			return result
		}
	}
	for _, c := range u.startPost {
		if result := r.runCommand(x, u, c); result != "success" {
			return result
		}
	}
	r.tell(nil)
	if u.remainAfterExit {
		r.service.set(active, "success")
		<-r.stop
	}
	return "success"
}

// runCommand runs a command to its end.
func (r *run) runCommand(x *execution, u *unit, c command) string {
	if r.stopping() {
		return "success"
	}
	child, err := x.start(c)
	if err != nil {
		r.service.manager.say("systemd: %s: %v", u.name, err)
		if c.ignoreFailure {
			return "success"
		}
		return "exit-code"
	}
	return r.await(x, u, child, c, infinite)
}

// await waits for a process: it ends by itself, is stopped, or has run for longer than atMost.
func (r *run) await(x *execution, u *unit, child *spawn.Child, c command, atMost time.Duration) string {
	var limit <-chan time.Time
	if atMost != infinite {
		timer := time.NewTimer(atMost)
		defer timer.Stop()
		limit = timer.C
	}
	select {
	case <-child.Done():
	case <-r.stop:
		for _, stop := range u.stopCommands {
			if helper, err := x.start(stop); err == nil {
				waitOrKill(helper, u.timeoutStop)
			}
		}
		child.Signal(syscall.SIGTERM)
		waitOrKill(child, u.timeoutStop)
		return "success"
	case <-limit:
		child.Signal(syscall.SIGTERM)
		waitOrKill(child, u.timeoutStop)
		return "timeout"
	}
	return resultOf(child, c)
}

func resultOf(child *spawn.Child, c command) string {
	if child.Err() == nil || c.ignoreFailure {
		return "success"
	}
	if child.Signaled() {
		return "signal"
	}
	return "exit-code"
}

func waitOrKill(child *spawn.Child, grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-child.Done():
	case <-timer.C:
		child.Signal(syscall.SIGKILL)
		<-child.Done()
	}
}
