package inframachine

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/scopes"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inventory"
)

// scope is what was read about one object, and what the steps have found out.
type scope[M driver.Object] struct {
	// Base has the object, which follows what the steps write; its status is derived and written at the end.
	scopes.Base[M, driverv1.MachineStatus]

	// owner is the Machine that owns the object; nil if there is none.
	owner *clusterv1.Machine
	// cluster of the Machine; nil if it does not exist or is not known.
	cluster *clusterv1.Cluster
	// clusterName is empty if it is not known.
	clusterName string

	// launched is the record of the launch, as persisted; launchedErr is why it cannot be read.
	launched    launchRecord
	launchedErr error
	// nameLimit is that of the cloud's traits.
	nameLimit int
	// uncertain is true if an earlier call of the attempt had an unknown outcome.
	uncertain bool
	// allowed is where the spec and the Machine let the instance go, of the attempt that is about to be made.
	allowed []driver.Candidate
	// request is what Create will be asked for.
	request driver.Launch[M]
	// handle of the instance, as far as it is known.
	handle driver.Handle
	// view of the instance in the inventory.
	view inventory.View

	// observed is what the steps have found out for the status.
	observed observed
	// leaveTurn ends the turn to call the cloud; nil if the object does not have it.
	leaveTurn func()
	// events are recorded once the status is written.
	events events.Pending
}

// observed is what the steps found out, from which the status is derived.
type observed struct {
	// pausedBy is what pauses the object; empty if nothing does.
	pausedBy []string
	// state explains the present state: what is awaited, or that the instance runs. Nil leaves the conditions as they are.
	state *explanation
	// failure explains why the machine has failed permanently.
	failure *explanation
	// refused explains why nothing may be called in the cloud for the object; nil if it may.
	refused *explanation
	// instance as last seen; nil if nothing new is known of it.
	instance *driver.Instance
	// unfinished explains what the instance lacks of what its spec wants; nil if nothing is known to lack.
	unfinished *explanation
	// notice is what the cloud has announced of the instance; nil if nothing is known.
	notice *Notice
	// replaced describes what has become of the Machine because of that; empty if nothing.
	replaced string
	// missing is true if the instance does not exist any more.
	missing bool
	// deleting is true if the object is being deleted.
	deleting bool
	// held is true if the instance stays until a user acts.
	held bool
	// unsettled is true if an answer is due within moments, so that there is nothing to report yet: the status is left as it is.
	unsettled bool
}

// explanation is a reason for machines and a message for people.
type explanation struct {
	reason  string
	message string
}

// newScope reads what belongs to the object.
func (r *Reconciler[M]) newScope(ctx context.Context, obj M) (*scope[M], error) {
	s := &scope[M]{Base: scopes.NewBase(obj, r.Clock.Now(), scopes.Writer[M, driverv1.MachineStatus]{
		Client: r.Client, Recorder: r.Recorder, Status: M.CommonStatus,
		// With itself, and with the process before it: one whose cache lags must not report the past again, since nothing would correct it.
		Shared: true, Versions: &r.written,
	})}
	s.nameLimit = r.traits.NameLimit
	s.launched, s.launchedErr = readRecord(obj)
	s.handle = r.handleOf(obj, s.launched, s.launchedErr)
	if unprotector, ok := r.Driver.(driver.Unprotector[M]); ok {
		s.handle.Protected = unprotector.Protected(obj)
	}
	s.observed.deleting = s.Deleting()
	if err := r.readOwner(ctx, s); err != nil {
		return nil, err
	}
	s.clusterName = obj.GetLabels()[clusterv1.ClusterNameLabel]
	if s.owner != nil {
		s.clusterName = s.owner.Spec.ClusterName
	}
	if err := r.readCluster(ctx, s); err != nil {
		return nil, err
	}
	s.observed.pausedBy = paused.By(obj, s.cluster)
	return s, nil
}

// handleOf is the handle of the object's instance, by the record of its launch. unreadable is why that cannot be read.
func (r *Reconciler[M]) handleOf(obj M, launched launchRecord, unreadable error) driver.Handle {
	key := client.ObjectKeyFromObject(obj)
	handle := driver.Handle{
		Scope:      r.cloud.Scope(obj),
		ProviderID: obj.CommonSpec().ProviderID,
		Token:      launched.token(key.String()),
		Name:       launched.Name,
		Placement:  launched.placement(),
		Attempt:    launched.Attempt,
		Operation:  launched.Operation,
		OwnerUID:   launched.UID,
		Owner:      driver.OwnerName(key),
	}
	if unreadable != nil {
		handle.OwnerUID = obj.GetUID()
	}
	return handle
}

func (r *Reconciler[M]) readOwner(ctx context.Context, s *scope[M]) error {
	ref := ownerMachineRef(s.Object)
	if ref == nil {
		return nil
	}
	machine := &clusterv1.Machine{}
	key := client.ObjectKey{Namespace: s.Key().Namespace, Name: ref.Name}
	if err := r.Client.Get(ctx, key, machine); err != nil {
		return errors.Wrapf(client.IgnoreNotFound(err), "reading Machine %s", key)
	}
	if machine.UID == ref.UID {
		s.owner = machine
	}
	return nil
}

func (r *Reconciler[M]) readCluster(ctx context.Context, s *scope[M]) error {
	if s.clusterName == "" {
		return nil
	}
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: s.Key().Namespace, Name: s.clusterName}
	if err := r.Client.Get(ctx, key, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Wrapf(err, "reading Cluster %s", key)
	}
	s.cluster = cluster
	return nil
}

// ownerMachineRef returns the reference to the Machine that controls the object, in whatever version
// of the API it was written.
func ownerMachineRef(obj client.Object) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(obj)
	if ref == nil || !isMachine(*ref) {
		return nil
	}
	return ref
}

// isMachine reports whether an owner reference names a Machine.
func isMachine(ref metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && ref.Kind == "Machine" && gv.Group == clusterv1.GroupVersion.Group
}
