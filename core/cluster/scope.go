package cluster

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/scopes"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/external"
	"millwright.dev/core/safety/freeze"
)

// scope is what one reconcile has read and observed of a Cluster. The steps fill it and change Object in memory; setStatus derives
// phase and conditions from it.
type scope struct {
	scopes.Base[*clusterv1.Cluster, clusterv1.ClusterStatus]

	options Options

	infrastructure, controlPlane reference

	// connected is true when there is a connection to the target cluster; disconnection is why there is none.
	connected     bool
	disconnection *shared.NotConnectedError
	// unansweredRequests describes the requests that the API server leaves unanswered although it answers probes; "" for none.
	unansweredRequests string
	// kubeconfigError is why the connection continues with an earlier kubeconfig; "" when it does not.
	kubeconfigError string
	// kubeconfigTrouble is why the core could not make or renew the kubeconfig; "" when it could, or had nothing to do.
	kubeconfigTrouble string

	// frozen reports whether no Machine of the Cluster is replaced now.
	frozen freeze.State
	// unfreeze means that a user asks for the end of that, unfreezeRefused why the annotation cannot be removed.
	unfreeze        bool
	unfreezeRefused error

	// workers is nil when they were not read.
	workers *workers

	// progress is how far the deletion is.
	progress deletion
	// skipSave is true when the Cluster that was read is not the one that the API server has: the next reconcile, which reads it
	// again, writes the status.
	skipSave bool
	// specRefused is why the API server has refused the spec with what the steps observed.
	specRefused error
	// finalizerRefused is why the finalizer could not be written. Without it nothing was read or done.
	finalizerRefused error
	// events are recorded when the changes are written.
	events events.Pending
}

// reference is a reference of the Cluster and the object that it refers to.
type reference struct {
	ref clusterv1.ContractVersionedObjectReference
	// object is what was read; its Unstructured is nil when err is not.
	object external.Object
	err    error
	// invalidFields are the fields of the object that the API of Clusters does not accept, and why.
	invalidFields []string
}

// deletion is one stage of the deletion, as reason and message of the condition Deleting.
type deletion struct{ reason, message string }

func (r *Reconciler) newScope(cluster *clusterv1.Cluster) *scope {
	return &scope{
		Base: scopes.NewBase(cluster, r.Clock.Now(), scopes.Writer[*clusterv1.Cluster, clusterv1.ClusterStatus]{
			Client: r.Client, Recorder: r.Recorder, Status: statusOf, Shared: true, Versions: r.Written,
		}),
		options:        r.Options,
		infrastructure: reference{ref: cluster.Spec.InfrastructureRef},
		controlPlane:   reference{ref: cluster.Spec.ControlPlaneRef},
	}
}

func statusOf(c *clusterv1.Cluster) *clusterv1.ClusterStatus { return &c.Status }

func (s *scope) paused() bool { return len(s.pausedBy()) > 0 }

func (s *scope) pausedBy() []string { return paused.By(s.Original, s.Original) }

// setStatus derives phase and conditions from what the steps observed.
func (s *scope) setStatus() outcome.Outcome {
	s.Object.Status.ObservedGeneration = s.Object.Generation
	s.Object.Status.Phase = string(ToPhase(s.Object))
	s.setWorkers()
	deadline := s.setConditions()
	s.setDeprecated()
	return deadline
}
