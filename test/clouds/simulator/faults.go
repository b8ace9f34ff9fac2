package simulator

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
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
	fault    Fault
	skipped  int
	released chan struct{}
	// gone is closed when the fault has been removed.
	gone chan struct{}
}

func (f *faults) add(fault Fault) string {
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
func (f *faults) take(action string, parameters map[string]string) *activeFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.active {
		if !a.matches(action, parameters) || a.fault.Count > 0 && a.fault.Hits >= a.fault.Count {
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

func (a *activeFault) matches(action string, parameters map[string]string) bool {
	if a.fault.Action != "*" && a.fault.Action != action {
		return false
	}
	for name, pattern := range a.fault.Parameters {
		if v, ok := parameters[name]; !ok || !Wildcard(pattern, v) {
			return false
		}
	}
	return true
}

func (f *faults) list() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Fault, 0, len(f.active))
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

// hold holds a call until the fault releases it. It is false when the caller has gone first.
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
