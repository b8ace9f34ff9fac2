package driver

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Placement is where an instance goes, and as what.
type Placement struct {
	// ID is the driver's own name of the place, for example a subnet or a zone. Not empty.
	ID string
	// FailureDomain is the failure domain that the place is in.
	FailureDomain string
	// InstanceType is the cloud's name of the type or size; one of those that the spec allows.
	InstanceType string
	// Market is what else capacity is scarce of beside type and failure domain: the purchase option, for example spot, or the reservation, the
	// dedicated hardware or the placement group that the launch is confined to. A shortage of one says nothing about the others.
	Market string
}

// Candidate is a place where an instance may go.
type Candidate struct {
	Placement
	// Rank orders the types that the spec allows: 0 for the first choice, and so on. A place with a higher one is used while those with
	// a lower one lack capacity.
	Rank int
	// Terms are what the launch accepts beside that, such as the most to pay, where the cloud may refuse it for that alone; empty if there
	// is nothing of the kind. They are not persisted.
	Terms string
	// Subnet is what the launch takes its addresses from, where that is not the place: a shortage of the place's own (Error.OnlyPlace) is one
	// of the subnet then, in all failure domains. Not persisted. Empty if it is the place.
	Subnet string
	// ShortSince is when the place last lacked capacity for this type, market and terms; zero if not lately. Set by the kit.
	ShortSince time.Time
}

// Launch is what Create needs to know.
type Launch[M Object] struct {
	// Object is the provider's machine; it is not to be changed.
	Object M
	// Scope that the instance is to be in.
	Scope Scope
	// Token makes the launch idempotent: at most 64 ASCII characters (lower-case letters, digits and -), unique to the attempt. What is
	// launched carries it, so that it can be read from the instance.
	Token string
	// RequestID is the token as a UUID, for clouds whose requests have one.
	RequestID string
	// Name of the instance, where the traits of the cloud have a NameLimit: see Name. The attempts of one machine have the same.
	Name string
	// OwnerUID and the object's namespace and name mark the instance and its dependants as created for this object. It is
	// the UID that the object had when it was first launched (clusterctl move changes UIDs).
	OwnerUID types.UID
	// Owner is OwnerName of the object.
	Owner string
	// Attempt counts from 1. A new attempt begins only when the cloud has answered that the one before
	// it created no instance, or that it has ended it before it ran.
	Attempt int
	// Lineage is the mark of the installation, see Lineage: what the launch makes carries it from its beginning, beside the mark of the
	// object. Empty if there is none, which the driver passes on as it is. The repetition of a launch has the same.
	Lineage string
	// ClusterName is the name of the Cluster.
	ClusterName string
	// FailureDomain is the failure domain that the Machine asks for; empty for any.
	FailureDomain string
	// Placement is one of those that Places returned. Empty in calls of Places.
	Placement Placement
	// UserData is the bootstrap data, compressed already where that is due, and within UserDataLimit. Secret: it must not
	// appear in an error or a log.
	UserData []byte
}

// Handle finds an instance. All of it but Owner and Scope is read from the object and its launch record, which anyone who may write the
// object may forge, so whatever it leads to belongs to the object only if that carries the mark.
type Handle struct {
	// Scope that the instance is in.
	Scope Scope
	// ProviderID of the instance; empty while it is not known.
	ProviderID string
	// Token of the launch; empty for instances that were not launched from here.
	Token string
	// Name of the instance, where the traits of the cloud have a NameLimit.
	Name string
	// Placement and Attempt of the launch: the ID of the place and, if it is known, its failure domain and type.
	Placement Placement
	Attempt   int
	// Operation by which the cloud finishes the launch; empty if there is none.
	Operation string
	// Incarnation is that of the Instance that was looked at right before, in calls that end it; empty if it is not known.
	Incarnation string
	// Ending is true if the caller wants the instance to end, or to have ended, whatever has become of it. A driver need not find out why
	// such a one no longer exists, and may take a complete list that lacks it for an answer.
	Ending bool
	// Protected is true if the spec asks for protection from termination, which is lifted before the instance is terminated.
	Protected bool
	// OwnerUID that the instance is marked with: that which the object had at its first launch.
	OwnerUID types.UID
	// Owner that the instance is marked with: OwnerName of the object. No other object has it.
	Owner string
}

// Matches returns whether the handle means this instance.
func (h Handle) Matches(i Instance) bool {
	if h.ProviderID != "" {
		return h.ProviderID == i.ProviderID
	}
	return h.Token != "" && h.Token == i.Token
}

// Owns returns whether the instance carries the mark of the handle. Provider IDs, tokens and names prove nothing: anyone who may write
// the object may claim any.
func (h Handle) Owns(i Instance) bool {
	return h.OwnerUID != "" && h.Owner != "" && h.OwnerUID == i.OwnerUID && (h.Owner == i.Owner || OwnerDigest(h.Owner) == i.Owner)
}
