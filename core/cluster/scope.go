package cluster

import (
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/external"
	"millwright.dev/core/remote"
)

// scope is what one reconcile has read and found out about a Cluster. The steps fill it and change cluster in
// memory; judge concludes from it.
type scope struct {
	now     time.Time
	options Options

	// original is the Cluster as read, cluster the one that the steps change.
	original, cluster *clusterv1.Cluster

	infrastructure, controlPlane reference

	// connected says whether there is a connection to the target cluster; disconnection says why not.
	connected     bool
	disconnection *remote.NotConnectedError
	// connectionTrouble says what the API server does not answer although it answers probes; "" when there is nothing.
	connectionTrouble string
	// kubeconfigProblem says why the connection goes on with an earlier kubeconfig; "" when it does not.
	kubeconfigProblem string

	// workers is nil when they were not read.
	workers *workers

	// progress is how far the deletion is.
	progress deletion
	// gone is true when the finalizer has been removed.
	gone bool
	// outdated is true when the Cluster that was read exists no more, or not as it was read.
	outdated bool
	// unwritten is why the API server has not accepted the spec with what the steps found out.
	unwritten error
	// refused is why the finalizer could not be written. Without it nothing was read or done.
	refused error
}

// reference is a reference of the Cluster and what is behind it.
type reference struct {
	ref clusterv1.ContractVersionedObjectReference
	// object is what was found; its Unstructured is nil when err is not.
	object external.Object
	err    error
	// problems are what the object reports and the API of Clusters does not accept.
	problems []string
}

// deletion is one step of the deletion, as reason and message of the condition Deleting.
type deletion struct{ reason, message string }

func (r *Reconciler) newScope(cluster *clusterv1.Cluster) *scope {
	return &scope{
		now: r.Clock.Now(), options: r.Options, original: cluster, cluster: cluster.DeepCopy(),
		infrastructure: reference{ref: cluster.Spec.InfrastructureRef},
		controlPlane:   reference{ref: cluster.Spec.ControlPlaneRef},
	}
}

func (s *scope) deleting() bool { return !s.original.DeletionTimestamp.IsZero() }

func (s *scope) paused() bool {
	_, annotated := s.original.Annotations[clusterv1.PausedAnnotation]
	return annotated || ptr.Deref(s.original.Spec.Paused, false)
}

func (s *scope) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.original)}
}

// judge concludes phase and conditions from what the steps found.
func (s *scope) judge() outcome.Outcome {
	s.cluster.Status.ObservedGeneration = s.cluster.Generation
	s.cluster.Status.Phase = string(ToPhase(s.cluster))
	s.setWorkers()
	deadline := s.setConditions()
	s.setDeprecated()
	return deadline
}
