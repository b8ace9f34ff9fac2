package cluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controlplane"
	"millwright.dev/contracts/infracluster"
	"millwright.dev/core/external"
	"millwright.dev/core/limits"
)

// NotNeededReason is the reason of InfrastructureReady and ControlPlaneAvailable for a Cluster that refers to no
// such object: it is its kubeconfig alone.
const NotNeededReason = "NotNeeded"

// setConditions derives all conditions. The outcome is the deadline at which one of them changes without an event.
func (s *scope) setConditions() outcome.Outcome {
	s.set(paused.Condition(s.pausedBy()))
	if s.paused() {
		return outcome.Continue()
	}
	s.set(s.deletingCondition())
	if s.Deleting() {
		s.set(s.availableCondition())
		return outcome.Continue()
	}
	if s.finalizerRefused != nil {
		s.set(conditions.False(clusterv1.ClusterAvailableCondition, clusterv1.InternalErrorReason,
			"The finalizer "+clusterv1.ClusterFinalizer+" cannot be added, and the Cluster is not reconciled without it: "+
				s.finalizerRefused.Error()))
		return outcome.Continue()
	}
	s.set(s.infrastructureCondition())
	s.set(s.initializedCondition())
	s.set(s.controlPlaneCondition())
	deadline := s.setProbeCondition()
	s.setRemediationAllowed()
	s.setWorkerConditions()
	s.set(s.availableCondition())
	if s.specRefused != nil {
		s.set(conditions.False(clusterv1.ClusterAvailableCondition, clusterv1.InternalErrorReason,
			"spec.controlPlaneEndpoint of the Cluster cannot be written: "+persist.Refusal(s.specRefused)))
	}
	return deadline
}

// set sets a condition; one without a type is unknown, and what was there stays.
func (s *scope) set(condition metav1.Condition) {
	if condition.Type != "" {
		conditions.Set(&s.Object.Status.Conditions, condition, s.Object.Generation, s.Now)
	}
}

func (s *scope) deletingCondition() metav1.Condition {
	if !s.Deleting() {
		return conditions.False(clusterv1.ClusterDeletingCondition, clusterv1.ClusterNotDeletingReason, "")
	}
	return conditions.True(clusterv1.ClusterDeletingCondition, s.progress.reason, s.progress.message)
}

func (s *scope) infrastructureCondition() metav1.Condition {
	const conditionType = clusterv1.ClusterInfrastructureReadyCondition
	if !s.infrastructure.ref.IsDefined() {
		return conditions.True(conditionType, NotNeededReason, "The Cluster has no infrastructureRef")
	}
	return s.infrastructure.condition(conditionType, ptr.Deref(s.Object.Status.Initialization.InfrastructureProvisioned, false),
		func(o external.Object) (*metav1.Condition, error) {
			return infracluster.At(o.Contract).Ready(o.Unstructured)
		})
}

func (s *scope) controlPlaneCondition() metav1.Condition {
	const conditionType = clusterv1.ClusterControlPlaneAvailableCondition
	if !s.controlPlane.ref.IsDefined() {
		return conditions.True(conditionType, NotNeededReason, "The Cluster has no controlPlaneRef")
	}
	return s.controlPlane.condition(conditionType, ptr.Deref(s.Object.Status.Initialization.ControlPlaneInitialized, false),
		func(o external.Object) (*metav1.Condition, error) {
			return controlplane.At(o.Contract).Available(o.Unstructured)
		})
}

// condition derives the condition of a reference: why its object cannot be used, else the provider's own condition.
func (r *reference) condition(conditionType string, done bool, read func(external.Object) (*metav1.Condition, error)) metav1.Condition {
	if external.NotSynced(r.err) {
		return metav1.Condition{}
	}
	if r.err != nil {
		return external.UnusableCondition(conditionType, r.ref, r.err)
	}
	from, err := read(r.object)
	if err != nil {
		return external.UnusableCondition(conditionType, r.ref, err)
	}
	condition := external.Mirrored(conditionType, from, done, "Waiting for the provider of "+external.Name(r.ref))
	return external.WithMessage(condition, limits.Message(external.Name(r.ref), r.invalidFields))
}

// initializedCondition is sticky: a control plane that was initialized once stays initialized.
func (s *scope) initializedCondition() metav1.Condition {
	const conditionType = clusterv1.ClusterControlPlaneInitializedCondition
	switch {
	case ptr.Deref(s.Object.Status.Initialization.ControlPlaneInitialized, false):
		return conditions.True(conditionType, clusterv1.ClusterControlPlaneInitializedReason, "")
	case s.controlPlane.ref.IsDefined():
		return conditions.False(
			conditionType,
			clusterv1.ClusterControlPlaneNotInitializedReason,
			"Waiting for "+external.Name(s.controlPlane.ref)+" to be initialized",
		)
	case s.disconnection != nil:
		return conditions.False(
			conditionType,
			clusterv1.ClusterControlPlaneNotInitializedReason,
			"Waiting for the API server to answer: "+s.explain(),
		)
	}
	return conditions.False(conditionType, clusterv1.ClusterControlPlaneNotInitializedReason, "Waiting for the API server to answer")
}

// setProbeCondition sets whether the API server answers. A condition that was True stays so for the grace period after the last
// answer; what is not known yet changes nothing.
func (s *scope) setProbeCondition() outcome.Outcome {
	const conditionType = clusterv1.ClusterRemoteConnectionProbeCondition
	if s.unansweredRequests != "" {
		s.set(conditions.False(conditionType, clusterv1.ClusterRemoteConnectionProbeFailedReason, s.unansweredRequests))
		return outcome.Continue()
	}
	if s.connected {
		s.set(conditions.True(conditionType, clusterv1.ClusterRemoteConnectionProbeSucceededReason,
			together(keptConnection(s.kubeconfigError), s.kubeconfigTrouble)))
		return outcome.Continue()
	}
	if s.disconnection == nil || s.notYetTried() && meta.FindStatusCondition(s.Object.Status.Conditions, conditionType) != nil {
		return outcome.Continue()
	}
	end := s.disconnection.LastSuccess.Add(s.options.RemoteConnectionGracePeriod)
	if meta.IsStatusConditionTrue(s.Object.Status.Conditions, conditionType) && s.Now.Before(end) {
		return outcome.ContinueAfter(end.Sub(s.Now))
	}
	s.set(conditions.False(conditionType, clusterv1.ClusterRemoteConnectionProbeFailedReason, s.explain()))
	return outcome.Continue()
}

// keptConnection is the message about a connection that was created with an earlier kubeconfig than the one that cannot be used.
func keptConnection(kubeconfigError string) string {
	if kubeconfigError == "" {
		return ""
	}
	return "The connection is kept with the kubeconfig that was read before, until it fails or the core restarts: " + kubeconfigError
}

func (s *scope) availableCondition() metav1.Condition {
	return conditions.Summarize(s.Object.Status.Conditions, conditions.Summary{
		Type: clusterv1.ClusterAvailableCondition, Good: clusterv1.ClusterAvailableReason,
		Bad: clusterv1.ClusterNotAvailableReason, Unknown: clusterv1.ClusterAvailableUnknownReason,
	}, s.availabilityParts()...)
}
