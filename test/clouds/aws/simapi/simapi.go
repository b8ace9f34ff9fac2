// Package simapi holds the JSON types of the EC2 simulator's control interface: what a test reads
// about the simulated account and what it may do to it. The simulator serves them below /_sim/, the
// package simclient is the Go client.
package simapi

import (
	"time"

	"millwright.dev/test/clouds/simulator"
)

// Call is one request to the EC2 API as the simulator saw it: Parameters are the form values, where user data is replaced by
// UserData.Size (bytes, decoded) and UserData.SHA256 (hex, decoded); Caller is the access key ID in the Authorization header; Resources
// are the instances that the call created, named or returned.
type Call = simulator.Call

// CodeConnectionCut is the Code of a Call whose connection was closed without an answer.
const CodeConnectionCut = simulator.CodeConnectionCut

// Fault changes what happens to calls of one action. Its Parameters are form values, its LaunchFailure lets RunInstances succeed and its
// instances change from pending to terminated with this state reason, as EC2 does for example with an encrypted volume whose key is not
// usable.
type Fault = simulator.Fault

// Cut says when a connection is closed without an answer.
type Cut = simulator.Cut

const (
	// CutBefore closes the connection before the call has had any effect.
	CutBefore = simulator.CutBefore
	// CutAfter closes the connection after the effect: the answer is lost.
	CutAfter = simulator.CutAfter
)

// APIError is an error answer of the EC2 API.
type APIError = simulator.APIError

// StateReason is why an instance changed its state.
type StateReason = simulator.Failure

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
