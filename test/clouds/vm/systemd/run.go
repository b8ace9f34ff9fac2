package systemd

import (
	"sync"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/clouds/vm/spawn"
)

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

func (r *run) notify(err error) { r.startedOnce.Do(func() { r.started <- err }) }

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
	end, result, again := inactive, "", true
	for again {
		end, result, again = r.life()
	}
	s.mu.Lock()
	s.run, s.state, s.result, s.pid = nil, end, result, 0
	s.mu.Unlock()
	// For what has not been reported yet: a oneshot service is started when it has ended.
	switch {
	case result != "success":
		r.notify(jobFailed(s.settings(), result))
	case r.stopping():
		r.notify(errors.Errorf("Job for %s canceled", s.settings().name))
	default:
		r.notify(nil)
	}
	close(r.done)
}

// life is one start of the service to its end, with the state that it ends in and whether it is to be
// started again.
func (r *run) life() (end state, result string, again bool) {
	s, u := r.service, r.service.settings()
	if !s.mayStart(u) {
		s.manager.logf("systemd: %s: Start request repeated too quickly.", u.name)
		return failed, "start-limit-hit", false
	}
	result = r.attempt(u)
	if r.stopping() {
		return inactive, "success", false
	}
	end = inactive
	if result != "success" {
		s.manager.logf("systemd: %s: Failed with result '%s'.", u.name, result)
		end = failed
	}
	if u.restart == "no" || u.restart == "on-failure" && result == "success" {
		return end, result, false
	}
	s.set(activating, result)
	if result != "success" {
		r.notify(jobFailed(u, result)) // The start has failed; a later one may succeed.
	}
	if !r.pause(u.restartDelay) {
		return inactive, "success", false
	}
	return end, result, true
}

func jobFailed(u *unit, result string) error {
	return errors.Errorf("Job for %s failed with result '%s'", u.name, result)
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

// attempt runs the service once and returns its result in systemd's words.
func (r *run) attempt(u *unit) string {
	x, err := r.service.manager.prepare(u)
	if err != nil {
		r.service.manager.logf("systemd: %s: %v", u.name, err)
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
		r.service.manager.logf("systemd: %s: %v", u.name, err)
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
	r.notify(nil)
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
	if u.remainAfterExit {
		r.service.set(active, "success")
		r.notify(nil)
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
		r.service.manager.logf("systemd: %s: %v", u.name, err)
		if c.ignoreFailure {
			return "success"
		}
		return "exit-code"
	}
	return r.await(x, u, child, c, infinite)
}

// await waits until a process exits, is stopped, or has run for longer than atMost.
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
