// Package driver defines what Millwright needs of a cloud to run machines on it.
//
// A provider implements Driver for its cloud and gives its machine kind the accessors of Object.
// The rest is shared: the reconciler (inframachine), the inventory of instances (inventory), the
// pacing of launches (pace), the batching of deletions (batch) and the manager around them (manager).
// See README.md for how to write a provider.
package driver

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Object is a provider's machine kind. Both accessors return pointers into the object.
type Object interface {
	client.Object
	CommonSpec() *driverv1.MachineSpec
	CommonStatus() *driverv1.MachineStatus
}

// Scope names the set of instances that one List returns, normally an account and a region.
// Launches are paced by scope too, since that is how clouds limit them.
type Scope string

// Driver calls the API of one cloud. All methods may be called concurrently, must honour the context and
// must return within its deadline: none waits for the cloud to finish what it was asked for.
//
// Errors are *Error with a class where the cloud's answer allows one; any other error means that the
// outcome is unknown. In particular, an error of a class other than Unknown from Create promises
// that no instance was made.
//
// Observe, Delete and Dependants take handles of one scope, at least one and at most batch.DefaultOptions().Size unless
// a provider sets another, and answer about each of them in the order of the handles. They should make one call for all.
type Driver[M Object] interface {
	// Scope returns the scope that obj's instance is in. It depends on nothing but the spec.
	Scope(obj M) Scope

	// Places returns where the next instance may go: whatever a cloud takes for a different request
	// although the token is the same, such as the zone. One of them is chosen, such that machines of one
	// set are spread over failure domains, and persisted before Create, so that each Create of one attempt
	// gets the same Placement. Each has the time when it last lacked capacity, and must not return
	// one outside of launch.FailureDomain when that is set. Fails as Create does, also if there is none, but makes nothing:
	// an answer that was lost counts as class Refused.
	Places(ctx context.Context, launch Launch[M]) ([]Candidate, error)

	// Create asks the cloud for an instance and returns it as soon as it has a provider ID, in
	// whatever state. It is idempotent by launch.Token: as long as the cloud remembers the token, the
	// same instance is returned. When the cloud remembers the token with other parameters, Create
	// returns the instance that the token made. It fails with class NotFound if the token was used
	// and its instance cannot be found. What it makes carries the mark of the launch from its beginning, and the instance
	// that it returns shows that.
	Create(ctx context.Context, launch Launch[M]) (Instance, error)

	// UserDataLimit returns how many bytes of user data the cloud takes, before any encoding; 0 for no limit. Launches with
	// more are refused, or compressed, before they get here.
	UserDataLimit() int

	// Observe reads instances of one scope from the cloud itself, past any cache: each by its handle's provider ID if
	// there is one, else by the token. An instance that has ceased to exist is returned as Terminated as long
	// as the cloud lists it; after that, and for one that never was, the answer is of class NotFound. One handle that
	// leads to nothing must not spoil the answers about the others. The provider ID in an answer is the instance's own, also if
	// the handle has another one that leads to the instance.
	Observe(ctx context.Context, scope Scope, handles []Handle) []Answer[Instance]

	// Delete asks the cloud to end instances of one scope and returns without waiting for them, with an error or nil for
	// each handle in their order. Repeating it is harmless. An error is of class NotFound if the cloud does not know
	// the instance, and of class Terminal if the cloud refuses until a person acts (termination protection). Where the
	// cloud refuses a call about many because of some, Delete finds out which, so that the others are ended. It must
	// end nothing but what the handles name; the caller has checked whose that is.
	Delete(ctx context.Context, scope Scope, handles []Handle) []error

	// Dependants names, for each handle, what was launched with the instance and still exists: disks, network
	// interfaces. It is called once the instance is gone. Only what carries the mark of the handle counts.
	Dependants(ctx context.Context, scope Scope, handles []Handle) []Answer[[]string]

	// List returns every instance in the scope that carries a mark, by whatever Millwright
	// installation, in any state that the cloud still lists. Serves the inventory.
	List(ctx context.Context, scope Scope) ([]Instance, error)

	// Mark describes in the cloud's own terms, for people, what an instance must carry to be the handle's.
	Mark(handle Handle) string
}

// Answer is the answer of a call for several handles about one of them.
type Answer[T any] struct {
	// Value is meaningful if Err is nil.
	Value T
	// Err is why there is no value, for this handle or for all of the call; *Error where the cloud's answer allows it.
	Err error
}

// Failed returns an answer with the same error for each of n handles.
func Failed[T any](n int, err error) []Answer[T] {
	return slices.Repeat([]Answer[T]{{Err: err}}, n)
}

// Placement is where an instance goes.
type Placement struct {
	// ID is the driver's own name of the place, for example a subnet. Not empty.
	ID string
	// FailureDomain is the failure domain that the place is in.
	FailureDomain string
}

// Candidate is a place where an instance may go.
type Candidate struct {
	Placement
	// ShortSince is when the place last lacked capacity for what the launch asks for; zero if not lately.
	ShortSince time.Time
}

// Launch is what Create needs to know.
type Launch[M Object] struct {
	// Object is the provider's machine; it is not to be changed.
	Object M
	// Token makes the launch idempotent: at most 64 ASCII characters, unique to the attempt.
	Token string
	// OwnerUID and the object's namespace and name mark the instance and its dependants as made for this object. It is
	// the UID that the object had when it was first launched (clusterctl move changes UIDs).
	OwnerUID types.UID
	// Attempt counts from 1. A new attempt begins only when the cloud has answered that the one before
	// it made no instance.
	Attempt int
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

// Handle finds an instance.
type Handle struct {
	// Scope that the instance is in.
	Scope Scope
	// ProviderID of the instance; empty when only the token is known.
	ProviderID string
	// Token of the launch; empty for instances that were not launched from here.
	Token string
	// OwnerUID that the instance is marked with: that which the object had at its first launch. It is read from the
	// launch record, which whoever may write the object may forge.
	OwnerUID types.UID
	// Owner that the instance is marked with: OwnerName of the object. Nobody else's object has it.
	Owner string
}
