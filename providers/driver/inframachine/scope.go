package inframachine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/inventory"
)

// scope is what was read about one object, and what the steps have found out.
type scope[M driver.Object] struct {
	key client.ObjectKey
	now time.Time
	// obj follows what the steps write; its status is concluded and written at the end.
	obj M

	// owner is the Machine that owns the object; nil if there is none.
	owner *clusterv1.Machine
	// cluster of the Machine; nil if it does not exist or is not known.
	cluster *clusterv1.Cluster
	// clusterName is empty if it is not known.
	clusterName string

	// launched is the record of the launch, as persisted; launchedErr says why it cannot be read.
	launched    launchRecord
	launchedErr error
	// uncertain says that an earlier call of the attempt had an unknown outcome.
	uncertain bool
	// request is what Create will be asked for.
	request driver.Launch[M]
	// handle of the instance, as far as it is known.
	handle driver.Handle
	// view of the instance in the inventory.
	view inventory.View

	facts facts
	// calling says that the object has its turn to call the cloud.
	calling bool
	// released says that the object may be gone: there is no status to write.
	released bool
	// announce holds what happened in this reconcile, for events and metrics once it is written.
	announce []announcement
}

// facts is what the steps found out, from which the status is concluded.
type facts struct {
	paused bool
	// standing says how things stand: what is awaited, or that the instance runs. Nil leaves the
	// conditions as they are.
	standing *reasoned
	// failure says why the machine has failed for good.
	failure *reasoned
	// observed is the instance; nil if nothing new is known of it.
	observed *driver.Instance
	// missing says that the instance does not exist any more.
	missing bool
	// deleting says that the object is being deleted.
	deleting bool
	// unsettled says that an answer is due within moments, so that there is nothing to say yet: the status is left as it is.
	unsettled bool
}

// reasoned is a reason for machines and a message for people.
type reasoned struct {
	reason  string
	message string
}

// gather reads what belongs to the object.
func (r *Reconciler[M]) gather(ctx context.Context, obj M) (*scope[M], error) {
	s := &scope[M]{
		key: client.ObjectKeyFromObject(obj),
		now: r.Clock.Now(),
		obj: obj,
	}
	s.launched, s.launchedErr = readRecord(obj)
	s.handle = driver.Handle{
		Scope:      r.Driver.Scope(obj),
		ProviderID: obj.CommonSpec().ProviderID,
		Token:      s.launched.token(s.key.String()),
		OwnerUID:   s.launched.UID,
		Owner:      driver.OwnerName(s.key),
	}
	if s.launchedErr != nil {
		s.handle.OwnerUID = obj.GetUID()
	}
	s.facts.deleting = !obj.GetDeletionTimestamp().IsZero()
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
	s.facts.paused = isPaused(obj, s.cluster)
	return s, nil
}

func (r *Reconciler[M]) readOwner(ctx context.Context, s *scope[M]) error {
	ref := ownerMachineRef(s.obj)
	if ref == nil {
		return nil
	}
	machine := &clusterv1.Machine{}
	key := client.ObjectKey{Namespace: s.key.Namespace, Name: ref.Name}
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
	key := client.ObjectKey{Namespace: s.key.Namespace, Name: s.clusterName}
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
	if ref == nil || ref.Kind != "Machine" {
		return nil
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || gv.Group != clusterv1.GroupVersion.Group {
		return nil
	}
	return ref
}

func isPaused(obj client.Object, cluster *clusterv1.Cluster) bool {
	if _, ok := obj.GetAnnotations()[clusterv1.PausedAnnotation]; ok {
		return true
	}
	return cluster != nil && cluster.Spec.Paused != nil && *cluster.Spec.Paused
}
