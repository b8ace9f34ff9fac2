package simulator

import "time"

// Call is one request to a simulated API as the simulator saw it.
type Call struct {
	// ID numbers the calls from 1 in the order of their arrival.
	ID int64 `json:"id"`
	// Time is the arrival on the simulator's clock.
	Time time.Time `json:"time"`
	// Action is what the API's documentation calls the operation, such as RunInstances.
	Action string `json:"action"`
	// Parameters are those that the simulator picks for the log. Of user data there are size and SHA-256 only, since it holds
	// credentials.
	Parameters map[string]string `json:"parameters,omitempty"`
	// ClientToken is what the API recognizes a repeated call by, if the call has it.
	ClientToken string `json:"clientToken,omitempty"`
	// Caller identifies the caller, such as the access key ID; empty when the call has no identity.
	Caller string `json:"caller,omitempty"`
	// Done is false while the request is still held or delayed.
	Done bool `json:"done"`
	// Status is the HTTP status of the answer, 0 when the connection was cut or is still open.
	Status int `json:"status,omitempty"`
	// Code is the API's error code, empty for success; ConnectionCut when no answer was sent.
	Code string `json:"code,omitempty"`
	// Resources are the IDs or names of the machines that the call created, named or returned.
	Resources []string `json:"resources,omitempty"`
	// FaultID is the injected fault that applied, if any.
	FaultID string `json:"faultID,omitempty"`
}

// CodeConnectionCut is the Code of a Call whose connection was closed without an answer, or in the middle of it.
const CodeConnectionCut = "ConnectionCut"

// Fault changes what happens to calls of one action. Faults are looked up in the order in which they
// were added; the first that applies is used up by one, so two faults on one action happen one after
// the other. Mind that SDKs retry by themselves: each of their attempts is a call of its own.
type Fault struct {
	// ID is given by the simulator when empty.
	ID string `json:"id,omitempty"`
	// Action is the action, "*" for each.
	Action string `json:"action"`
	// Parameters narrows the fault to calls that have all of these parameters, for example
	// InstanceType: m5.large. Values may have the wildcards * and ?.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Skip lets so many matching calls pass first.
	Skip int `json:"skip,omitempty"`
	// Count is how many calls the fault applies to; 0 means until it is removed.
	Count int `json:"count,omitempty"`

	// Error is answered instead of doing anything.
	Error *APIError `json:"error,omitempty"`
	// Cut closes the connection without an answer: CutBefore or CutAfter the effect.
	Cut Cut `json:"cut,omitempty"`
	// DelayBefore and DelayAfter pass on the simulator's clock before and after the effect.
	DelayBefore time.Duration `json:"delayBefore,omitempty"`
	// DelayAfter passes between the effect and the answer.
	DelayAfter time.Duration `json:"delayAfter,omitempty"`
	// HoldBefore and HoldAfter hold the call until the fault is released or removed, or the caller
	// has gone.
	HoldBefore bool `json:"holdBefore,omitempty"`
	// HoldAfter holds between the effect and the answer.
	HoldAfter bool `json:"holdAfter,omitempty"`
	// HoldBody holds in the middle of the answer's body.
	HoldBody bool `json:"holdBody,omitempty"`
	// LaunchFailure lets a call that launches machines succeed, and the machines fail later for this reason, each cloud in its way: the
	// state reason of a terminated EC2 instance, the error of an operation. Compute Engine's deletions fail by it as well.
	LaunchFailure *Failure `json:"launchFailure,omitempty"`

	// Hits counts the calls that the fault applied to; Holding those that it holds now. Set by the
	// simulator.
	Hits int `json:"hits"`
	// Holding counts the calls that the fault holds now.
	Holding int `json:"holding"`
}

// Cut says when a connection is closed without an answer.
type Cut string

const (
	// CutBefore closes the connection before the call has had any effect.
	CutBefore Cut = "before"
	// CutAfter closes the connection after the effect: the answer is lost.
	CutAfter Cut = "after"
)

// APIError is an error answer of a simulated API.
type APIError struct {
	// Code is the API's error code, such as InsufficientInstanceCapacity.
	Code string `json:"code"`
	// Message is optional.
	Message string `json:"message,omitempty"`
	// Status is the HTTP status; 0 takes the one that the cloud sends with this code.
	Status int `json:"status,omitempty"`
	// RetryAfter is sent as header of that name, in whole seconds, if it is more than 0.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

// Failure is why something failed after its call had succeeded.
type Failure struct {
	// Code such as Client.InternalError or AllocationFailed.
	Code string `json:"code"`
	// Message is optional.
	Message string `json:"message,omitempty"`
}
