package cloud

import (
	"net/http"
	"slices"
	"time"
)

// Break is how the answer to a call is lost.
type Break string

const (
	// LoseRequest ends the connection before the call has had an effect.
	LoseRequest Break = "LoseRequest"
	// LoseAnswer ends the connection after the call has had its effect.
	LoseAnswer Break = "LoseAnswer"
	// HangRequest never answers, and the call has no effect.
	HangRequest Break = "HangRequest"
	// HangAnswer never answers, although the call has had its effect.
	HangAnswer Break = "HangAnswer"
	// HangBody stops in the middle of the answer's body, after the effect.
	HangBody Break = "HangBody"
)

// Fault makes some calls go wrong. The first that applies, in the order of adding, is used.
type Fault struct {
	// Call that it applies to, for example CreateMachine; empty for all.
	Call string
	// Match narrows it further; nil for all. It must not call the Cloud.
	Match func(Call) bool
	// Skip is how many calls that it applies to pass before; the fault of the n-th call has Skip n-1 and Count 1.
	Skip int
	// Count is how many calls it hits; 0 for all from then on.
	Count int
	// For is how long it lasts from its adding; 0 forever.
	For time.Duration

	// Break loses the answer.
	Break Break
	// Status and Failure are the answer instead of the call's own, which has no effect, unless AfterEffect is true.
	Status      int
	Failure     Failure
	RetryAfter  time.Duration
	AfterEffect bool
	// Operation is what becomes of the operation that the call begins.
	Operation OperationFault
}

// OperationFault is what goes wrong with an operation.
type OperationFault struct {
	// Slow is added to each of its steps.
	Slow time.Duration
	// Never is true if it never ends.
	Never bool
	// Fail is how it ends instead; of a creation, once Parts (0 to 3) parts were created, which stay behind. The machine is then gone,
	// unless Keep is true, which leaves it in state failed.
	Fail  *Failure
	Parts int
	Keep  bool
}

// Call is a call as a fault sees it.
type Call struct {
	Name     string
	Account  string
	Zone     string
	Resource string
	Body     []byte
}

type fault struct {
	Fault
	until time.Time
	seen  int
	hits  int
}

// AddFault adds a fault and returns what removes it.
func (c *Cloud) AddFault(f Fault) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &fault{Fault: f}
	if f.For > 0 {
		added.until = c.now().Add(f.For)
	}
	c.faults = append(c.faults, added)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults = slices.DeleteFunc(c.faults, func(other *fault) bool { return other == added })
	}
}

// ClearFaults removes all faults.
func (c *Cloud) ClearFaults() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = nil
}

// faultOf returns the fault that hits a call, or the zero Fault.
func (c *Cloud) faultOf(r request) Fault {
	for _, f := range c.faults {
		expired := !f.until.IsZero() && !c.now().Before(f.until)
		if expired || f.Count > 0 && f.hits == f.Count || f.Call != "" && f.Call != r.call {
			continue
		}
		if f.Match != nil && !f.Match(Call{Name: r.call, Account: r.account, Zone: r.zone, Resource: r.name, Body: r.body}) {
			continue
		}
		f.seen++
		if f.seen <= f.Skip {
			continue
		}
		f.hits++
		return f.Fault
	}
	return Fault{}
}

// handle makes a call with what goes wrong with it.
func (c *Cloud) handle(r request) reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.calls[r.call]++
	f := c.faultOf(r)
	if f.Break == LoseRequest || f.Break == HangRequest {
		return reply{broken: f.Break}
	}
	injected := refuse(f.Status, f.Failure.Code, f.Failure.Message)
	injected.retryAfter = f.RetryAfter
	if f.Status != 0 && !f.AfterEffect {
		return injected
	}
	r.operation = f.Operation
	out := c.admit(r)
	if f.Status != 0 {
		out = injected
	}
	out.broken = f.Break
	return out
}

// admit executes a call if the account, its credentials and its limits allow it.
func (c *Cloud) admit(r request) reply {
	a, refused := c.authenticate(r)
	if refused != nil {
		return *refused
	}
	if refused := c.throttle(a, r); refused != nil {
		return *refused
	}
	if r.execute == nil {
		return refuse(http.StatusNotFound, CodeNotFound, "the API has no such path or method")
	}
	return r.execute(c, a, r)
}
