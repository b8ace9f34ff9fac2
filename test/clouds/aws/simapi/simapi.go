// Package simapi holds the JSON types of the EC2 simulator's control interface: what a test reads
// about the simulated account and what it may do to it. The simulator serves them below /_sim/, the
// package simclient is the Go client.
package simapi

import "time"

// Call is one request to the EC2 API as the simulator saw it.
type Call struct {
	// ID numbers the calls from 1 in the order of their arrival.
	ID int64 `json:"id"`
	// Time is the arrival on the simulator's clock.
	Time time.Time `json:"time"`
	// Action is the EC2 action, such as RunInstances.
	Action string `json:"action"`
	// Parameters are the form values. User data is replaced by UserData.Size (bytes, decoded) and
	// UserData.SHA256 (hex, decoded), since it holds credentials.
	Parameters map[string]string `json:"parameters,omitempty"`
	// ClientToken repeats the parameter of that name.
	ClientToken string `json:"clientToken,omitempty"`
	// AccessKeyID is the identity in the Authorization header; empty when there was none.
	AccessKeyID string `json:"accessKeyID,omitempty"`
	// Done is false while the request is still held or delayed.
	Done bool `json:"done"`
	// Status is the HTTP status of the answer, 0 when the connection was cut or is still open.
	Status int `json:"status,omitempty"`
	// Code is the EC2 error code, empty for success; ConnectionCut when no answer was sent.
	Code string `json:"code,omitempty"`
	// InstanceIDs are the instances that the call created, named or returned.
	InstanceIDs []string `json:"instanceIDs,omitempty"`
	// FaultID is the injected fault that applied, if any.
	FaultID string `json:"faultID,omitempty"`
}

// CodeConnectionCut is the Code of a Call whose connection was closed without an answer.
const CodeConnectionCut = "ConnectionCut"

// Fault changes what happens to calls of one action. Faults are looked up in the order in which they
// were added; the first that applies is used up by one, so two faults on one action happen one after
// the other. Mind that the SDK retries by itself: each of its attempts is a call of its own.
type Fault struct {
	// ID is given by the simulator when empty.
	ID string `json:"id,omitempty"`
	// Action is the EC2 action, "*" for each.
	Action string `json:"action"`
	// Parameters narrows the fault to calls that have all of these form values, for example
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
	// HoldBefore and HoldAfter keep the call until the fault is released or removed, or the caller
	// has gone.
	HoldBefore bool `json:"holdBefore,omitempty"`
	// HoldAfter holds between the effect and the answer.
	HoldAfter bool `json:"holdAfter,omitempty"`
	// LaunchFailure lets RunInstances succeed and its instances go from pending to terminated with
	// this state reason, as EC2 does for example with an encrypted volume whose key is not usable.
	LaunchFailure *StateReason `json:"launchFailure,omitempty"`

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

// APIError is an error answer of the EC2 API.
type APIError struct {
	// Code is the EC2 error code, such as InsufficientInstanceCapacity.
	Code string `json:"code"`
	// Message is optional.
	Message string `json:"message,omitempty"`
	// Status is the HTTP status; 0 takes the one that EC2 sends with this code.
	Status int `json:"status,omitempty"`
}

// StateReason is why an instance changed its state.
type StateReason struct {
	// Code such as Client.InternalError or Server.InsufficientInstanceCapacity.
	Code string `json:"code"`
	// Message is optional.
	Message string `json:"message,omitempty"`
}

// Instance is one instance of the account, including those which describe calls do not show yet.
type Instance struct {
	ID                string            `json:"id"`
	ReservationID     string            `json:"reservationID"`
	ClientToken       string            `json:"clientToken,omitempty"`
	State             string            `json:"state"`
	StateReason       StateReason       `json:"stateReason"`
	ImageID           string            `json:"imageID"`
	InstanceType      string            `json:"instanceType"`
	AvailabilityZone  string            `json:"availabilityZone"`
	SubnetID          string            `json:"subnetID,omitempty"`
	PrivateIPAddress  string            `json:"privateIPAddress,omitempty"`
	PublicIPAddress   string            `json:"publicIPAddress,omitempty"`
	Spot              bool              `json:"spot,omitempty"`
	Tags              map[string]string `json:"tags,omitempty"`
	LaunchTime        time.Time         `json:"launchTime"`
	TerminationTime   time.Time         `json:"terminationTime,omitzero"`
	UserDataSize      int               `json:"userDataSize"`
	UserDataSHA256    string            `json:"userDataSHA256,omitempty"`
	Visible           bool              `json:"visible"`
	VolumeIDs         []string          `json:"volumeIDs,omitempty"`
	NetworkInterfaces []string          `json:"networkInterfaces,omitempty"`
}

// Live reports whether the instance costs money: pending, running, shutting down or stopped.
func (i Instance) Live() bool { return i.State != "terminated" }

// Volume is one EBS volume of the account.
type Volume struct {
	ID                  string            `json:"id"`
	InstanceID          string            `json:"instanceID,omitempty"`
	Device              string            `json:"device,omitempty"`
	Status              string            `json:"status"`
	Type                string            `json:"type"`
	SizeGiB             int32             `json:"sizeGiB"`
	IOPS                int32             `json:"iops,omitempty"`
	Throughput          int32             `json:"throughput,omitempty"`
	Encrypted           bool              `json:"encrypted,omitempty"`
	KMSKeyID            string            `json:"kmsKeyID,omitempty"`
	DeleteOnTermination bool              `json:"deleteOnTermination"`
	Tags                map[string]string `json:"tags,omitempty"`
}

// NetworkInterface is one network interface of the account.
type NetworkInterface struct {
	ID                  string            `json:"id"`
	InstanceID          string            `json:"instanceID,omitempty"`
	Status              string            `json:"status"`
	SubnetID            string            `json:"subnetID"`
	PrivateIPAddress    string            `json:"privateIPAddress"`
	SecurityGroups      []string          `json:"securityGroups,omitempty"`
	DeleteOnTermination bool              `json:"deleteOnTermination"`
	Tags                map[string]string `json:"tags,omitempty"`
}

// Delays are how long the account takes; all of them may be changed while it runs and hold for what
// starts afterwards.
type Delays struct {
	// Pending is the time from RunInstances to the state running.
	Pending time.Duration `json:"pending"`
	// ShuttingDown is the time from TerminateInstances to the state terminated.
	ShuttingDown time.Duration `json:"shuttingDown"`
	// Consistency is how long a new instance, its volumes and its network interfaces cannot be found
	// by any call but a repeated RunInstances.
	Consistency time.Duration `json:"consistency"`
	// Forget is how long a terminated instance is still described.
	Forget time.Duration `json:"forget"`
}
