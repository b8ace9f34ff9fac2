package simulator

import (
	"maps"
	"slices"
	"sync"
)

// callLog records the calls.
type callLog struct {
	mu      sync.Mutex
	lastID  int64
	records []*Exchange
}

// Exchange is one call under way.
type Exchange struct {
	log   *callLog
	fault *Fault
	entry Call
}

func (l *callLog) begin(entry Call) *Exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID++
	entry.ID = l.lastID
	e := &Exchange{log: l, entry: entry}
	l.records = append(l.records, e)
	return e
}

func (l *callLog) list() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Call, 0, len(l.records))
	for _, e := range l.records {
		entry := e.entry
		entry.Parameters = maps.Clone(entry.Parameters)
		entry.Resources = slices.Clone(entry.Resources)
		out = append(out, entry)
	}
	return out
}

func (l *callLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = nil
}

func (e *Exchange) change(f func(*Call)) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	f(&e.entry)
}

func (e *Exchange) useFault(f *activeFault) {
	if f == nil {
		return
	}
	fault := f.fault
	e.fault = &fault
	e.change(func(c *Call) { c.FaultID = fault.ID })
}

// Error is the error that a fault has the call end with; nil for none. When it is answered is up to the simulator: after it has
// authenticated the caller, for example.
func (e *Exchange) Error() *APIError {
	if e.fault == nil {
		return nil
	}
	return e.fault.Error
}

// LaunchFailure is why a fault has the machines fail that the call launches; nil for no failure.
func (e *Exchange) LaunchFailure() *Failure {
	if e.fault == nil {
		return nil
	}
	return e.fault.LaunchFailure
}

// SetCaller records the caller.
func (e *Exchange) SetCaller(name string) { e.change(func(c *Call) { c.Caller = name }) }

// AddResources records machines that the call is about.
func (e *Exchange) AddResources(ids ...string) {
	e.change(func(c *Call) {
		for _, id := range ids {
			if !slices.Contains(c.Resources, id) {
				c.Resources = append(c.Resources, id)
			}
		}
	})
}

func (e *Exchange) end(status int, code string) {
	e.change(func(c *Call) { c.Done, c.Status, c.Code = true, status, code })
}
