// Package simulator has what every simulated cloud needs that is called over HTTP and has nothing to do with what it is a simulation of:
// the call log, faults, the control interface with its client, throttling, and the switching of machines.
package simulator

import (
	"net/http"
	"strconv"
	"time"

	"k8s.io/utils/clock"
)

// Front is what each call of a simulated API passes through. Its zero value is of no use; see NewFront.
type Front struct {
	clock   clock.Clock
	latency time.Duration
	calls   callLog
	faults  faults
}

// NewFront returns a front without faults. latency is how long every answer takes at least, in real time whatever the clock; none
// when it is not more than 0.
func NewFront(c clock.Clock, latency time.Duration) *Front { return &Front{clock: c, latency: latency} }

// Answer is what a call ends with.
type Answer struct {
	// Status and Code are for the log; Code is empty for success.
	Status int
	Code   string
	// Write sends the answer.
	Write func(http.ResponseWriter)
}

// Serve executes one call: what a fault does before the effect, the effect, what it does after. Action, Parameters and ClientToken of the
// entry go into the log; the parameters that faults are matched with are given apart, since the log must not have all of them.
func (f *Front) Serve(
	w http.ResponseWriter, r *http.Request, entry Call, parameters map[string]string, perform func(*Exchange) Answer,
) {
	entry.Time = f.clock.Now()
	e := f.calls.begin(entry)
	fault := f.faults.take(entry.Action, parameters)
	e.useFault(fault)
	if !f.passBefore(r, fault) {
		cut(e)
	}
	answer := perform(e)
	time.Sleep(f.latency)
	if !f.passAfter(r, fault) {
		cut(e)
	}
	if failure := e.Error(); failure != nil && failure.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(failure.RetryAfter.Seconds())))
	}
	if fault != nil && fault.fault.HoldBody {
		half := &halfway{ResponseWriter: w}
		answer.Write(half)
		if half.sendHalf(); !fault.hold(r) {
			cut(e)
		}
		e.end(answer.Status, answer.Code)
		half.sendRest()
		return
	}
	e.end(answer.Status, answer.Code)
	answer.Write(w)
}

// cut closes the connection without an answer.
func cut(e *Exchange) {
	e.end(0, CodeConnectionCut)
	panic(http.ErrAbortHandler)
}

// passBefore applies what a fault does before the effect. It is false when the connection is to be
// closed without any effect.
func (f *Front) passBefore(r *http.Request, a *activeFault) bool {
	if a == nil {
		return true
	}
	return f.pass(r, a, a.fault.DelayBefore, a.fault.HoldBefore) && a.fault.Cut != CutBefore
}

// passAfter applies what a fault does between the effect and the answer.
func (f *Front) passAfter(r *http.Request, a *activeFault) bool {
	if a == nil {
		return true
	}
	return f.pass(r, a, a.fault.DelayAfter, a.fault.HoldAfter) && a.fault.Cut != CutAfter
}

func (f *Front) pass(r *http.Request, a *activeFault, delay time.Duration, hold bool) bool {
	if delay > 0 {
		select {
		case <-f.clock.After(delay):
		case <-r.Context().Done():
			return false
		}
	}
	return !hold || a.hold(r)
}

// Close releases held calls.
func (f *Front) Close() { f.faults.clear() }

// Calls is the log of the calls to the API so far, oldest first.
func (f *Front) Calls() []Call { return f.calls.list() }

// ClearCalls empties the log. Calls under way stay out of it.
func (f *Front) ClearCalls() { f.calls.clear() }

// AddFault injects a fault and returns its ID.
func (f *Front) AddFault(fault Fault) string { return f.faults.add(fault) }

// Faults are the faults still injected, in their order.
func (f *Front) Faults() []Fault { return f.faults.list() }

// RemoveFault removes a fault and releases the calls that it holds.
func (f *Front) RemoveFault(id string) { f.faults.remove(id) }

// ReleaseFault releases the calls that the fault holds now; later ones are held again.
func (f *Front) ReleaseFault(id string) { f.faults.release(id) }

// ClearFaults removes all faults.
func (f *Front) ClearFaults() { f.faults.clear() }
