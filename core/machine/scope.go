package machine

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/controller/scopes"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/external"
	"millwright.dev/core/remote"
)

// scope is what one reconcile has read and observed of a Machine. The steps fill it and change Object in memory; setStatus derives
// conditions and phase from it.
type scope struct {
	scopes.Base[*clusterv1.Machine, clusterv1.MachineStatus]

	watchFilter string
	options     Options

	// cluster is nil when the Cluster does not exist.
	cluster *clusterv1.Cluster
	// machineSet and machineDeployment are the owners of the Machine, nil when it has none.
	machineSet        *clusterv1.MachineSet
	machineDeployment *clusterv1.MachineDeployment

	bootstrap, infrastructure reference

	// connection is nil when disconnection is not.
	connection    *remote.Connection
	disconnection *shared.NotConnectedError
	// node is the Machine's Node as cached, not to be changed; nodeErr is why none of those that claim to be it is.
	node    *corev1.Node
	nodeErr error
	// identity is what was observed of the Node's identity; rivalErr is set while another Machine's object is not read yet.
	identity identity
	rivalErr error
	// controlPlane is known while the Machine is being deleted.
	controlPlane controlPlane
	// interruptible is what the infrastructure reports, if infrastructureRead: if the object was read and is provisioned.
	interruptible, infrastructureRead bool
	// ownersUnknown is true when a MachineSet or MachineDeployment that owns the Machine was not found.
	ownersUnknown bool
	// sync is how far the Node is in step.
	sync nodeSync

	// refused is why the API server has refused metadata or spec; unfounded is true when what the steps observed depends on what
	// it refused.
	refused   error
	unfounded bool
	// progress is how far the deletion is.
	progress deletion
	// drained is what the drain has observed.
	drained drained
	// drainNote is the result of a drain that is over, "" when it is not known or was recorded as an event of its own.
	drainNote string
	// preservedErr is why a Machine that is not to be preserved any more could not be deleted.
	preservedErr error
	// nodeDeleted is the name of the Node that has been deleted with the Machine.
	nodeDeleted string
	// events are recorded when the changes are written.
	events events.Pending
	// quiet is true when the next event is moments away, so that a condition about the wait is not worth a write.
	quiet bool
	// skipSave is true when the Machine that was read is not the one that the API server has, or that could not be reached: the next
	// reconcile, which reads it again, writes the status.
	skipSave bool
}

// reference is a reference of the Machine and the object that it refers to.
type reference struct {
	ref clusterv1.ContractVersionedObjectReference
	// object is what was read; its Unstructured is nil when nothing was.
	object external.Object
	// own is true when the Machine controls the object.
	own bool
	// err is why object cannot be used.
	err error
	// recreated is true for infrastructure that is not the machine that was provisioned before.
	recreated bool
	// beingCreated is true for an object that its MachineSet is about to create.
	beingCreated bool
	// invalidFields are the fields of the object that the API of Machines does not accept, and why.
	invalidFields []string
	// seen is true for an object that is not there and has been.
	seen bool
}

// found is true when the object was read.
func (r *reference) found() bool { return r.object.Unstructured != nil }

// deletion is one stage of the deletion, as reason and message of the condition Deleting.
type deletion struct{ reason, message string }

// newScope returns the scope of a Machine, and reads what the Machine belongs to.
func (r *Reconciler) newScope(ctx context.Context, machine *clusterv1.Machine) (*scope, error) {
	s := &scope{
		Base: scopes.NewBase(machine, r.Clock.Now(), scopes.Writer[*clusterv1.Machine, clusterv1.MachineStatus]{
			Client: r.Client, Recorder: r.Recorder, Status: statusOf, Shared: true, Versions: r.Written,
		}),
		watchFilter:    r.WatchFilter,
		options:        r.Options,
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

// readOwners reads the MachineSet and the MachineDeployment of the Machine. That one of them is deleted already is no error: a
// Machine can outlive its owner while it is being deleted.
func (r *Reconciler) readOwners(ctx context.Context, s *scope) error {
	owner := metav1.GetControllerOf(s.Original)
	if owner == nil || owner.Kind != "MachineSet" {
		return nil
	}
	set := &clusterv1.MachineSet{}
	found, err := r.find(ctx, types.NamespacedName{Namespace: s.Original.Namespace, Name: owner.Name}, set)
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
	found, err = r.find(ctx, types.NamespacedName{Namespace: s.Original.Namespace, Name: owner.Name}, deployment)
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

// ofAnotherCore is true when the Cluster is for another core than the Machine: that one has the connection.
func (s *scope) ofAnotherCore() bool {
	return s.cluster != nil && !predicates.MatchesWatchLabel(s.watchFilter, s.cluster)
}

func statusOf(m *clusterv1.Machine) *clusterv1.MachineStatus { return &m.Status }

func (s *scope) paused() bool { return len(s.pausedBy()) > 0 }

func (s *scope) pausedBy() []string { return paused.By(s.Original, s.cluster) }

// owner identifies the Machine in requests to the target cluster.
func (s *scope) owner() remote.Owner {
	return remote.Owner{NamespacedName: s.Key(), UID: s.Original.UID}
}

func (s *scope) clusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Original.Namespace, Name: s.Original.Spec.ClusterName}
}

// undetermined is true while a provider kind is being read for the first time, as after a start of the core. Then nothing is
// derived, so that a restart writes nothing.
func (s *scope) undetermined() bool {
	return external.NotSynced(s.bootstrap.err) || external.NotSynced(s.infrastructure.err) || external.NotSynced(s.controlPlane.err) ||
		external.NotSynced(s.rivalErr)
}

// setStatus derives conditions and phase from what the steps observed.
func (s *scope) setStatus() outcome.Outcome {
	deadline := s.setConditions()
	s.setDeprecated()
	phase := string(ToPhase(s.Object))
	if s.Object.Status.Phase != phase {
		s.Object.Status.Phase = phase
		s.Object.Status.LastUpdated = metav1.NewTime(s.Now).Rfc3339Copy()
	}
	s.Object.Status.ObservedGeneration = s.Object.Generation
	return deadline
}

func hasAnnotation(m *clusterv1.Machine, key string) bool {
	_, ok := m.Annotations[key]
	return ok
}
