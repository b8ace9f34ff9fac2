package ec2

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"millwright.dev/test/clouds/aws/simapi"
)

// faults are the injected faults in their order.
type faults struct {
	mu     sync.Mutex
	lastID int
	active []*activeFault
}

// activeFault is a fault with the calls that it holds.
type activeFault struct {
	owner *faults
	// fault is written under the owner's lock; its settings never change.
	fault    simapi.Fault
	skipped  int
	released chan struct{}
	// gone is closed when the fault has been removed.
	gone chan struct{}
}

func (f *faults) add(fault simapi.Fault) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastID++
	if fault.ID == "" {
		fault.ID = "fault-" + strconv.Itoa(f.lastID)
	}
	fault.Hits, fault.Holding = 0, 0
	f.active = append(f.active, &activeFault{
		owner: f, fault: fault, released: make(chan struct{}), gone: make(chan struct{}),
	})
	return fault.ID
}

// take finds the fault for a call and uses it up by one. A used up fault stays in the list, so that
// its hits can be read and what it holds can be released.
func (f *faults) take(action string, p params) *activeFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.active {
		if !a.matches(action, p) || a.fault.Count > 0 && a.fault.Hits >= a.fault.Count {
			continue
		}
		if a.skipped < a.fault.Skip {
			a.skipped++
			continue
		}
		a.fault.Hits++
		return a
	}
	return nil
}

func (a *activeFault) matches(action string, p params) bool {
	if a.fault.Action != "*" && a.fault.Action != action {
		return false
	}
	for name, pattern := range a.fault.Parameters {
		if v, ok := p[name]; !ok || !wildcard(pattern, v) {
			return false
		}
	}
	return true
}

func (f *faults) list() []simapi.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]simapi.Fault, 0, len(f.active))
	for _, a := range f.active {
		out = append(out, a.fault)
	}
	return out
}

func (f *faults) release(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.active {
		if a.fault.ID == id {
			close(a.released)
			a.released = make(chan struct{})
		}
	}
}

func (f *faults) remove(id string) { f.drop(func(a *activeFault) bool { return a.fault.ID == id }) }

func (f *faults) clear() { f.drop(func(*activeFault) bool { return true }) }

func (f *faults) drop(which func(*activeFault) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = slices.DeleteFunc(f.active, func(a *activeFault) bool {
		if which(a) {
			close(a.gone)
			return true
		}
		return false
	})
}

// hold keeps a call until the fault lets it go. It is false when the caller has gone first.
func (a *activeFault) hold(r *http.Request) bool {
	a.owner.mu.Lock()
	a.fault.Holding++
	released := a.released
	a.owner.mu.Unlock()
	defer func() {
		a.owner.mu.Lock()
		a.fault.Holding--
		a.owner.mu.Unlock()
	}()
	select {
	case <-released:
	case <-a.gone:
	case <-r.Context().Done():
		return false
	}
	return true
}

// passBefore applies what a fault does before the effect. It is false when the connection is to be
// closed without any effect.
func (s *Server) passBefore(r *http.Request, a *activeFault) bool {
	if a == nil {
		return true
	}
	return s.pass(r, a, a.fault.DelayBefore, a.fault.HoldBefore) && a.fault.Cut != simapi.CutBefore
}

// passAfter applies what a fault does between the effect and the answer.
func (s *Server) passAfter(r *http.Request, a *activeFault) bool {
	if a == nil {
		return true
	}
	return s.pass(r, a, a.fault.DelayAfter, a.fault.HoldAfter) && a.fault.Cut != simapi.CutAfter
}

func (s *Server) pass(r *http.Request, a *activeFault, delay time.Duration, hold bool) bool {
	if delay > 0 {
		select {
		case <-s.clock.After(delay):
		case <-r.Context().Done():
			return false
		}
	}
	return !hold || a.hold(r)
}

// injected is the error answer of a fault.
func injected(e *simapi.APIError) *apiError {
	out := fail(e.Code, "%s", e.Message)
	if e.Message == "" {
		out.message = "Injected by a test."
	}
	if e.Status != 0 {
		out.status = e.Status
	}
	return out
}
