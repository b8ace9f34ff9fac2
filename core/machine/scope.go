package machine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/core/external"
	"millwright.dev/core/remote"
)

// scope is what one reconcile has read and found out about a Machine. The steps fill it and change machine in
// memory; judge concludes from it.
type scope struct {
	now     time.Time
	options Options

	// original is the Machine as read, machine the one that the steps change.
	original, machine *clusterv1.Machine
	// cluster is nil when the Cluster does not exist.
	cluster *clusterv1.Cluster
	// machineSet and machineDeployment are the owners of the Machine, nil when it has none.
	machineSet        *clusterv1.MachineSet
	machineDeployment *clusterv1.MachineDeployment

	bootstrap, infrastructure reference

	// connection is nil when disconnection is not.
	connection    *remote.Connection
	disconnection *remote.NotConnectedError
	// node is the Machine's Node as cached, not to be changed; nodeErr says why none of those that claim to be it is.
	node    *corev1.Node
	nodeErr error
	// identity is what was found out about the Node's identity; rivalErr says that another Machine's object is not read yet.
	identity identity
	rivalErr error
	// controlPlane is known while the Machine is being deleted.
	controlPlane controlPlane
	// interruptible is what the infrastructure says, if factsKnown: if the object was read and is provisioned.
	interruptible, factsKnown bool
	// ownersUnknown is true when a MachineSet or MachineDeployment that owns the Machine was not found.
	ownersUnknown bool
	// sync is how far the Node is in step.
	sync nodeSync

	// recording is the record that has to be written before the Node is changed; nil when the Node waits for none.
	recording *NodeRecord

	// refused is why the API server has not accepted metadata or spec; baseless is true when what the steps found out rests
	// on what it refused.
	refused  error
	baseless bool
	// progress is how far the deletion is.
	progress deletion
	// drained is what the drain has found.
	drained drained
	// drainNote is what the drain that is over has come to, "" when that is not known or has been an event of its own.
	drainNote string
	// nodeDeleted is the name of the Node that has been deleted with the Machine.
	nodeDeleted string
	// events are the events to emit when the changes are written.
	events []pendingEvent
	// quiet is true when the next event is moments away, so that a condition about the wait is not worth a write.
	quiet bool
	// gone is true when the finalizer has been removed.
	gone bool
}

// reference is a reference of the Machine and what is behind it.
type reference struct {
	ref clusterv1.ContractVersionedObjectReference
	// object is what was found; its Unstructured is nil when nothing was.
	object external.Object
	// own is true when the Machine controls the object.
	own bool
	// err says why object cannot be used.
	err error
	// recreated is true for infrastructure that is not the machine that was provisioned before.
	recreated bool
	// beingMade is true for an object that its MachineSet is about to create.
	beingMade bool
	// problems are what the object reports and the API of Machines does not accept.
	problems []string
	// seen is true for an object that is not there and has been.
	seen bool
}

// found says whether the object behind the reference was read.
func (r *reference) found() bool { return r.object.Unstructured != nil }

// deletion is one step of the deletion, as reason and message of the condition Deleting.
type deletion struct{ reason, message string }

// pendingEvent is an event.
type pendingEvent struct{ kind, reason, action, note string }

// read makes the scope of a Machine and reads what it belongs to.
func (r *Reconciler) read(ctx context.Context, machine *clusterv1.Machine) (*scope, error) {
	s := &scope{
		now: r.Clock.Now(), options: r.Options, original: machine, machine: machine.DeepCopy(),
		bootstrap:      reference{ref: machine.Spec.Bootstrap.ConfigRef},
		infrastructure: reference{ref: machine.Spec.InfrastructureRef},
	}
	cluster := &clusterv1.Cluster{}
	found, err := r.find(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}, cluster)
	if err != nil {
		return nil, err
	}
	if found {
		s.cluster = cluster
	}
	return s, r.readOwners(ctx, s)
}

// readOwners reads the MachineSet and the MachineDeployment of the Machine. That one of them is gone already is
// no error: a Machine can outlive its owner while it is being deleted.
func (r *Reconciler) readOwners(ctx context.Context, s *scope) error {
	owner := metav1.GetControllerOf(s.original)
	if owner == nil || owner.Kind != "MachineSet" {
		return nil
	}
	set := &clusterv1.MachineSet{}
	found, err := r.find(ctx, types.NamespacedName{Namespace: s.original.Namespace, Name: owner.Name}, set)
	if err != nil {
		return err
	}
	if !found || set.UID != owner.UID {
		s.ownersUnknown = true
		return nil
	}
	s.machineSet = set
	owner = metav1.GetControllerOf(set)
	if owner == nil || owner.Kind != "MachineDeployment" {
		return nil
	}
	deployment := &clusterv1.MachineDeployment{}
	found, err = r.find(ctx, types.NamespacedName{Namespace: s.original.Namespace, Name: owner.Name}, deployment)
	if err != nil {
		return err
	}
	if !found || deployment.UID != owner.UID {
		s.ownersUnknown = true
		return nil
	}
	s.machineDeployment = deployment
	return nil
}

// find reads an object from the cache without copying it, so it must not be changed.
func (r *Reconciler) find(ctx context.Context, key types.NamespacedName, obj client.Object) (bool, error) {
	err := r.Client.Get(ctx, key, obj, &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, errors.Wrapf(err, "reading %T %s", obj, key)
}

// ofAnotherCore says whether the Cluster is for another core than the Machine: that one has the connection.
func (s *scope) ofAnotherCore() bool {
	return s.cluster != nil && !predicates.MatchesWatchLabel(s.options.WatchFilter, s.cluster)
}

func (s *scope) deleting() bool { return !s.original.DeletionTimestamp.IsZero() }

func (s *scope) paused() bool {
	_, annotated := s.original.Annotations[clusterv1.PausedAnnotation]
	return annotated || s.cluster != nil && ptr.Deref(s.cluster.Spec.Paused, false)
}

func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.original) }

// owner is as whom the Machine asks for something in the target cluster.
func (s *scope) owner() remote.Owner {
	return remote.Owner{NamespacedName: s.key(), UID: s.original.UID}
}

func (s *scope) request() ctrl.Request { return ctrl.Request{NamespacedName: s.key()} }

func (s *scope) clusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: s.original.Namespace, Name: s.original.Spec.ClusterName}
}

// undetermined says whether a provider kind is being read for the first time, as after a start of the core. Then
// nothing is concluded, so that a restart writes nothing.
func (s *scope) undetermined() bool {
	return external.NotSynced(s.bootstrap.err) || external.NotSynced(s.infrastructure.err) || external.NotSynced(s.controlPlane.err) ||
		external.NotSynced(s.rivalErr)
}

// recordEvent has an event emitted when the changes of this reconcile are written.
func (s *scope) recordEvent(kind, reason, action, note string) {
	s.events = append(s.events, pendingEvent{kind, reason, action, note})
}

// judge concludes conditions and phase from what the steps found.
func (s *scope) judge() outcome.Outcome {
	deadline := s.setConditions()
	s.setDeprecated()
	s.recordProblemEvents()
	s.recordProgressEvents()
	phase := string(ToPhase(s.machine))
	if s.machine.Status.Phase != phase {
		s.machine.Status.Phase = phase
		s.machine.Status.LastUpdated = metav1.NewTime(s.now).Rfc3339Copy()
	}
	s.machine.Status.ObservedGeneration = s.machine.Generation
	return deadline
}

func hasAnnotation(m *clusterv1.Machine, key string) bool {
	_, ok := m.Annotations[key]
	return ok
}
