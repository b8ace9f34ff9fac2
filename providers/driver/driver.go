// Package driver defines what Millwright needs of a cloud to run machines on it.
//
// A provider implements Driver for its cloud and gives its machine kind the accessors of Object.
// The rest is shared: the reconciler (inframachine), the inventory of instances (inventory), the limits on calls (limit), the
// memory of shortages (shortage), the batching of calls (batch) and the manager around them (manager).
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

// Driver calls the API of one cloud. All methods may be called concurrently, must honour the context and
// must return within its deadline: none waits for the cloud to finish what it was asked for.
//
// Errors are *Error with a class where the cloud's answer allows one; any other error means that the
// outcome is unknown. In particular, an error of a class other than Unknown and NotFound from Create promises
// that the call created no instance and never will.
//
// Observe, Delete and Cleanup take handles of one scope, at least one and at most Traits().BatchSize,
// and answer about each of them in the order of the handles. They should make one call for all. What a handle leads to may be
// another owner's, since anyone who may write the object may forge most of a handle: see Handle.
type Driver[M Object] interface {
	// Traits returns what the kit has to know of the cloud as such. It never changes.
	Traits() Traits

	// Scope returns the scope that obj's instance is in. It depends on nothing but the spec.
	Scope(obj M) Scope

	// LimitScope names that for which the cloud counts the calls of a scope together, normally an account and a region. It makes
	// no call. Scopes of one limit scope are paced together, and one throttled call holds up all of them.
	LimitScope(scope Scope) string

	// Places returns where the next instance may go: whatever a cloud takes for a different request
	// although the token is the same, such as the zone and the type. One of them is chosen, such that machines of one
	// set are spread over failure domains, and persisted before Create, so that each Create of one attempt
	// gets the same Placement. It must not return one outside of launch.FailureDomain when that is set. Fails as Create does,
	// also if there is none, but makes nothing: an answer that was lost counts as class Refused.
	Places(ctx context.Context, launch Launch[M]) ([]Candidate, error)

	// Create asks the cloud for an instance and returns as soon as the cloud has accepted that: see Accepted. Where the cloud
	// knows tokens, it is idempotent by launch.Token: as long as the cloud remembers the token, the same instance is
	// returned; also when the cloud remembers the token with other parameters. It fails with class NotFound if the token was used
	// and its instance cannot be found. Where the cloud knows names instead, it creates launch.Name if there is nothing of that
	// name, else it fails with class Conflict, whatever has the name; who that is, is found out by Observe.
	// What it makes carries the mark of the launch (owner and token) from its beginning.
	Create(ctx context.Context, launch Launch[M]) (Accepted, error)

	// Observe reads instances of one scope from the cloud itself, past any cache: each by its handle's provider ID if there is
	// one, else by the token or the name. An instance that has ceased to exist is returned as Terminated as long as the cloud
	// knows it; after that, and for one that never was, the answer is of class NotFound. A handle with an operation but without
	// a provider ID is of a launch that was accepted: as long as the operation continues, the answer is an instance that is
	// Pending, without a provider ID if it does not exist yet; once it has failed, an instance that is Failed, with Refused
	// saying of which class the failure is, whether or not there is something of it. One handle that leads to nothing must not
	// spoil the answers about the others. NotFound ends a Machine permanently, unless Handle.Ending is set: it is no conclusion from a list
	// that may lack more than it says. The provider ID in an answer is the instance's own, also if the handle has another one that leads to
	// the instance.
	Observe(ctx context.Context, scope Scope, handles []Handle) []Answer[Instance]

	// Delete asks the cloud to end instances of one scope and returns without waiting for them, with an error or nil for
	// each handle in their order. Repeating it is harmless. An error is of class NotFound if the cloud does not know
	// the instance, and of class Terminal if the cloud refuses until a person acts (termination protection). Where the
	// cloud refuses a call about many because of some, Delete finds out which, so that the others are ended. It must
	// end nothing but what the handles name; the caller has checked whose that is.
	Delete(ctx context.Context, scope Scope, handles []Handle) []error

	// Cleanup returns, for each handle, what was created with the instance and still exists: disks, network interfaces, addresses;
	// empty once nothing is left. What the cloud does not end by itself it asks the cloud to end. It is called once the
	// instance no longer exists, also if it never was: between two attempts and before the object is released, until nothing is left.
	// Only what carries the mark of the handle's owner counts, whichever attempt it is of, and only that may be ended.
	Cleanup(ctx context.Context, scope Scope, handles []Handle) []Answer[[]string]

	// List returns every instance in the scope that carries a mark, by whatever Millwright
	// installation, in any state that the cloud still lists; also, where the cloud lists them, launches that were
	// accepted and have failed. Where some failure domains do not answer, it returns what there is in the others, with an
	// Incomplete. Serves the inventory.
	List(ctx context.Context, scope Scope) ([]Instance, error)

	// Mark describes in the cloud's own terms, for people, what an instance must carry to be the handle's.
	Mark(handle Handle) string
}

// StatusLister is implemented by drivers of clouds whose lists leave out what a second, more expensive source knows: whether an instance
// really has power, or passes the cloud's own checks. It is asked every Traits().StatusInterval while the scope has machines.
type StatusLister interface {
	// ListStatus returns what is known of the instances in the scope, by provider ID. Instances that it leaves out are as List
	// says.
	ListStatus(ctx context.Context, scope Scope) (map[string]Status, error)
}

// Finisher is implemented by drivers of clouds whose launches cannot ask for all that a spec may want, so that some of it is asked for once
// the instance is there. Its calls are of kind CallModify.
type Finisher[M Object] interface {
	// Unfinished says, for people, what the instance lacks of what obj's spec wants; empty if nothing. instance is what List or Observe
	// has returned of it. It makes no call.
	Unfinished(obj M, instance Instance) string

	// Finish asks the cloud for what is unfinished. It may be called again at any time with any later description, and before the cloud shows
	// everywhere that there is the instance. It is called for instances alone that carry the mark of obj.
	Finish(ctx context.Context, obj M, instance Instance) error
}

// Unprotector is implemented by drivers of clouds that protect instances from termination where a spec asks for it. Its calls are of kind
// CallModify.
type Unprotector[M Object] interface {
	// Protected returns whether obj's spec asks for the protection. It makes no call.
	Protected(obj M) bool

	// Unprotect lifts the protection of an instance that is about to be terminated, and of which Observe has just shown that it carries the
	// mark of the handle. Repeating it is harmless.
	Unprotect(ctx context.Context, scope Scope, handle Handle) error
}

// Remarker is implemented by drivers of clouds whose marks can be written after the launch. Its calls are of kind CallModify.
type Remarker interface {
	// Remark writes the lineage of instances, and of what was launched with them and carries the same mark, in place of the one that
	// they carry, and changes nothing else: neither may it mark what carries no mark. List or Observe has shown of each handle, which has
	// a provider ID, that the instance carries its mark. It returns an error or nil for each of them, in their order, and may be repeated.
	Remark(ctx context.Context, scope Scope, handles []Handle, lineage string) []error
}

// LeftoverLister is implemented by drivers of clouds where something may outlive the instance that it was created with: disks, network
// interfaces, addresses. Its calls are of kind CallList.
type LeftoverLister interface {
	// ListLeftovers returns what carries a mark, by whatever installation, is no instance and is used by nothing. It may return an
	// Incomplete as List does.
	ListLeftovers(ctx context.Context, scope Scope) ([]Leftover, error)
}

// Leftover is what has outlived its instance.
type Leftover struct {
	// Kind in the cloud's own words, such as volume, and ID in the scope: the cloud's own name.
	Kind, ID string
	// OwnerUID, Owner and Lineage are the mark, as in Instance.
	OwnerUID types.UID
	Owner    string
	Lineage  string
	// Created is when it was created; zero if the cloud does not report it.
	Created time.Time
}

// Scope is a set of instances that one List returns.
type Scope struct {
	// Identity is the name of the identity with whose credentials the calls are made; empty for that of the process. Which version of
	// its credentials is used does not matter to the scope.
	Identity string
	// Location is where the instances are, in the driver's own terms: a region; a subscription and resource group; a project.
	Location string
}

// String returns the scope for logs and metrics.
func (s Scope) String() string {
	if s.Identity == "" {
		return s.Location
	}
	return s.Identity + "/" + s.Location
}

// Accepted is what the cloud has answered to a launch.
type Accepted struct {
	// Instance has a provider ID once it certainly exists: whatever happens to it from then on, Observe or List show it. Its mark is that
	// of the launch. Without a provider ID nothing of it counts.
	Instance Instance
	// Operation is the cloud's name of what it does to finish the launch, if the instance is not certain yet: letters, digits, and
	// . _ - , 256 at most. It is persisted and handed back in Handle.
	Operation string
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
