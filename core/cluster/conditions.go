package cluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controlplane"
	"millwright.dev/contracts/infracluster"
	"millwright.dev/core/external"
	"millwright.dev/core/limits"
)

// ReasonNotNeeded is the reason of InfrastructureReady and ControlPlaneAvailable for a Cluster that refers to no
// such object: it is its kubeconfig alone.
const ReasonNotNeeded = "NotNeeded"

// setConditions concludes all conditions. The outcome is the deadline at which one of them changes by itself.
func (s *scope) setConditions() outcome.Outcome {
	s.set(s.pausedCondition())
	if s.paused() {
		return outcome.Continue()
	}
	s.set(s.deletingCondition())
	if s.deleting() {
		s.set(s.availableCondition())
		return outcome.Continue()
	}
	if s.refused != nil {
		s.set(conditions.False(clusterv1.ClusterAvailableCondition, clusterv1.InternalErrorReason,
			"Nothing is done for this Cluster before it has the finalizer "+clusterv1.ClusterFinalizer+": "+s.refused.Error()))
		return outcome.Continue()
	}
	s.set(s.infrastructureCondition())
	s.set(s.initializedCondition())
	s.set(s.controlPlaneCondition())
	deadline := s.setProbeCondition()
	s.setWorkerConditions()
	s.set(s.availableCondition())
	if s.unwritten != nil {
		s.set(conditions.False(clusterv1.ClusterAvailableCondition, clusterv1.InternalErrorReason,
			"spec.controlPlaneEndpoint of the Cluster cannot be written: "+persist.Refusal(s.unwritten)))
	}
	return deadline
}

func (s *scope) set(condition metav1.Condition) {
	if condition.Type == "" {
		return
	}
	conditions.Set(&s.cluster.Status.Conditions, condition, s.cluster.Generation, s.now)
}

func (s *scope) pausedCondition() metav1.Condition {
	if !s.paused() {
		return conditions.False(clusterv1.PausedCondition, clusterv1.NotPausedReason, "")
	}
	message := "spec.paused is true"
	if !ptr.Deref(s.cluster.Spec.Paused, false) {
		message = "the annotation " + clusterv1.PausedAnnotation + " is set"
	}
	return conditions.True(clusterv1.PausedCondition, clusterv1.PausedReason, message)
}

func (s *scope) deletingCondition() metav1.Condition {
	if !s.deleting() {
		return conditions.False(clusterv1.ClusterDeletingCondition, clusterv1.ClusterNotDeletingReason, "")
	}
	return conditions.True(clusterv1.ClusterDeletingCondition, s.progress.reason, s.progress.message)
}

func (s *scope) infrastructureCondition() metav1.Condition {
	const conditionType = clusterv1.ClusterInfrastructureReadyCondition
	if !s.infrastructure.ref.IsDefined() {
		return conditions.True(conditionType, ReasonNotNeeded, "The Cluster has no infrastructureRef")
	}
	return s.infrastructure.condition(conditionType, ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false),
		func(o external.Object) (*metav1.Condition, error) {
			return infracluster.At(o.Contract).Ready(o.Unstructured)
		})
}

func (s *scope) controlPlaneCondition() metav1.Condition {
	const conditionType = clusterv1.ClusterControlPlaneAvailableCondition
	if !s.controlPlane.ref.IsDefined() {
		return conditions.True(conditionType, ReasonNotNeeded, "The Cluster has no controlPlaneRef")
	}
	return s.controlPlane.condition(conditionType, ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false),
		func(o external.Object) (*metav1.Condition, error) {
			return controlplane.At(o.Contract).Available(o.Unstructured)
		})
}

// condition judges a reference: what stands in the way of reading its object, else the provider's own condition.
func (r *reference) condition(conditionType string, done bool, read func(external.Object) (*metav1.Condition, error)) metav1.Condition {
	if external.NotSynced(r.err) {
		return metav1.Condition{}
	}
	if r.err != nil {
		return external.Problem(conditionType, r.ref, r.err)
	}
	from, err := read(r.object)
	if err != nil {
		return external.Problem(conditionType, r.ref, err)
	}
	condition := external.Mirrored(conditionType, from, done, "Waiting for the provider of "+external.Name(r.ref))
	return external.WithMessage(condition, limits.Message(external.Name(r.ref), r.problems))
}

// initializedCondition is sticky: a control plane that has been there once stays initialized.
func (s *scope) initializedCondition() metav1.Condition {
	const conditionType = clusterv1.ClusterControlPlaneInitializedCondition
	switch {
	case ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false):
		return conditions.True(conditionType, clusterv1.ClusterControlPlaneInitializedReason, "")
	case s.controlPlane.ref.IsDefined():
		return conditions.False(conditionType, clusterv1.ClusterControlPlaneNotInitializedReason, "Waiting for "+external.Name(s.controlPlane.ref)+" to be initialized")
	case s.disconnection != nil:
		return conditions.False(conditionType, clusterv1.ClusterControlPlaneNotInitializedReason, "Waiting for the API server to answer: "+explain(s.disconnection))
	}
	return conditions.False(conditionType, clusterv1.ClusterControlPlaneNotInitializedReason, "Waiting for the API server to answer")
}

// setProbeCondition tells whether the API server answers. A condition that was True stays so for the grace period
// after the last answer; what is not known yet changes nothing.
func (s *scope) setProbeCondition() outcome.Outcome {
	const conditionType = clusterv1.ClusterRemoteConnectionProbeCondition
	if s.connectionTrouble != "" {
		s.set(conditions.False(conditionType, clusterv1.ClusterRemoteConnectionProbeFailedReason, s.connectionTrouble))
		return outcome.Continue()
	}
	if s.connected {
		s.set(conditions.True(conditionType, clusterv1.ClusterRemoteConnectionProbeSucceededReason, keptConnection(s.kubeconfigProblem)))
		return outcome.Continue()
	}
	if s.disconnection == nil || s.notYetTried() && meta.FindStatusCondition(s.cluster.Status.Conditions, conditionType) != nil {
		return outcome.Continue()
	}
	end := s.disconnection.LastSuccess.Add(s.options.RemoteConnectionGracePeriod)
	if meta.IsStatusConditionTrue(s.cluster.Status.Conditions, conditionType) && s.now.Before(end) {
		return outcome.ContinueAfter(end.Sub(s.now))
	}
	s.set(conditions.False(conditionType, clusterv1.ClusterRemoteConnectionProbeFailedReason, explain(s.disconnection)))
	return outcome.Continue()
}

// keptConnection is the message about a connection that was made with an earlier kubeconfig.
func keptConnection(problem string) string {
	if problem == "" {
		return ""
	}
	return "The connection is kept with the kubeconfig that was read before, until it fails or the core restarts: " + problem
}

func (s *scope) availableCondition() metav1.Condition {
	return conditions.Summarize(s.cluster.Status.Conditions, conditions.Summary{
		Type: clusterv1.ClusterAvailableCondition, Good: clusterv1.ClusterAvailableReason,
		Bad: clusterv1.ClusterNotAvailableReason, Unknown: clusterv1.ClusterAvailableUnknownReason,
	}, s.availabilityParts()...)
}
