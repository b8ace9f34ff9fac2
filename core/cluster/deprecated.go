//nolint:staticcheck // for clients of v1beta1, as long as upstream converts for them
package cluster

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// olderConditions are the conditions that clients of v1beta1 read.
var olderConditions = []conditions.Older{
	{Type: clusterv1.ClusterAvailableCondition, As: clusterv1.ReadyV1Beta1Condition},
	{Type: clusterv1.ClusterInfrastructureReadyCondition, As: clusterv1.InfrastructureReadyV1Beta1Condition},
	{Type: clusterv1.ClusterControlPlaneAvailableCondition, As: clusterv1.ControlPlaneReadyV1Beta1Condition},
	{Type: clusterv1.ClusterControlPlaneInitializedCondition, As: clusterv1.ControlPlaneInitializedV1Beta1Condition},
}

// setDeprecated sets the conditions for clients of v1beta1. They follow from the others, so they cost no write.
func (s *scope) setDeprecated() {
	if s.paused() {
		return
	}
	status := clusterv1.ClusterV1Beta1DeprecatedStatus{}
	if s.Object.Status.Deprecated != nil && s.Object.Status.Deprecated.V1Beta1 != nil {
		status = *s.Object.Status.Deprecated.V1Beta1
	}
	status.Conditions = conditions.ToV1Beta1(s.Object.Status.Conditions, status.Conditions, olderConditions...)
	s.Object.Status.Deprecated = &clusterv1.ClusterDeprecatedStatus{V1Beta1: &status}
}
