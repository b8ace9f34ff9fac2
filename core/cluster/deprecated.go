//nolint:staticcheck // for clients of v1beta1, as long as upstream converts for them
package cluster

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capierrors "sigs.k8s.io/cluster-api/api/deprecated/errors"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controlplane"
	"millwright.dev/contracts/infracluster"
)

// olderConditions are the conditions that clients of v1beta1 read.
var olderConditions = []conditions.Older{
	{Type: clusterv1.ClusterAvailableCondition, As: clusterv1.ReadyV1Beta1Condition},
	{Type: clusterv1.ClusterInfrastructureReadyCondition, As: clusterv1.InfrastructureReadyV1Beta1Condition},
	{Type: clusterv1.ClusterControlPlaneAvailableCondition, As: clusterv1.ControlPlaneReadyV1Beta1Condition},
	{Type: clusterv1.ClusterControlPlaneInitializedCondition, As: clusterv1.ControlPlaneInitializedV1Beta1Condition},
}

// setDeprecated sets for clients of v1beta1 conditions of the older form, which follow from the others, and the terminal failure.
func (s *scope) setDeprecated() {
	if s.paused() {
		return
	}
	status := clusterv1.ClusterV1Beta1DeprecatedStatus{}
	if s.Object.Status.Deprecated != nil && s.Object.Status.Deprecated.V1Beta1 != nil {
		status = *s.Object.Status.Deprecated.V1Beta1
	}
	status.Conditions = conditions.ToV1Beta1(s.Object.Status.Conditions, status.Conditions, olderConditions...)
	if reason, message, known := s.terminalFailure(); known {
		status.FailureReason, status.FailureMessage = conditions.OlderFailure[capierrors.ClusterStatusError](reason, message)
	}
	s.Object.Status.Deprecated = &clusterv1.ClusterDeprecatedStatus{V1Beta1: &status}
}

// terminalFailure is what the infrastructure cluster, or else the control plane, reports of itself. It is not known while an object that
// the Cluster refers to could not be read; then what was reported before stays.
func (s *scope) terminalFailure() (reason, message string, known bool) {
	for _, read := range []struct {
		*reference
		failure func(*reference) (string, string, error)
	}{
		{&s.infrastructure, func(r *reference) (string, string, error) {
			return infracluster.At(r.object.Contract).Failure(r.object.Unstructured)
		}},
		{&s.controlPlane, func(r *reference) (string, string, error) {
			return controlplane.At(r.object.Contract).Failure(r.object.Unstructured)
		}},
	} {
		switch {
		case !read.ref.IsDefined() || apierrors.IsNotFound(read.err):
			continue
		case read.object.Unstructured == nil:
			return "", "", false
		}
		reason, message, err := read.failure(read.reference)
		if err != nil || reason != "" || message != "" {
			return reason, message, err == nil
		}
	}
	return "", "", true
}
