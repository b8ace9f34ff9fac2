package cloud

import "time"

// operation is one that is running or has ended.
type operation struct {
	Operation
	// parameters of the call that began it, for repetitions of its request ID.
	parameters string
	requestID  string
	fault      OperationFault
}

// begin adds a running operation.
func (c *Cloud) begin(a *account, kind, zone, name string, labels map[string]string) *operation {
	o := &operation{Operation: Operation{
		ID: c.next("op"), Kind: kind, Zone: zone, Name: name, Labels: labels, Status: StatusRunning, CreatedAt: c.now(),
	}}
	a.operations[o.ID] = o
	return o
}

// end ends an operation, with a failure or without, and forgets it after a while.
func (c *Cloud) end(a *account, o *operation, at time.Time, failure *Failure) {
	if o.Status != StatusRunning {
		return
	}
	o.Status, o.Failure = StatusDone, failure
	if failure != nil {
		o.Status = StatusFailed
	}
	c.at(at.Add(c.options.Retention), func(time.Time) {
		delete(a.operations, o.ID)
		if a.requests[o.requestID] == o {
			delete(a.requests, o.requestID)
		}
	})
}

// step does something after a step of an operation, unless the operation has ended by then or is one that never ends.
func (c *Cloud) step(o *operation, from time.Time, delay time.Duration, do func(at time.Time)) {
	if o.fault.Never {
		return
	}
	c.at(from.Add(delay+o.fault.Slow), func(at time.Time) {
		if o.Status == StatusRunning {
			do(at)
		}
	})
}
