package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/external"
)

// setNodeConditions derives NodeReady and NodeHealthy.
func (s *scope) setNodeConditions() outcome.Outcome {
	switch {
	case s.node != nil:
		ready := nodeReady(s.node)
		ready.Message = sentences(ready.Message, s.identity.contested, s.identity.refused)
		s.set(ready)
		s.set(s.withSync(nodeHealthy(s.node)))
	case s.disconnection != nil:
		return s.setDisconnected()
	case isOtherMachine(s.nodeErr):
		s.setBoth(metav1.ConditionFalse, NodeOfAnotherMachineReason, s.nodeErr.Error())
	case s.nodeErr != nil:
		s.setBoth(metav1.ConditionUnknown, clusterv1.MachineNodeInternalErrorReason, s.nodeErr.Error())
	case s.Object.Spec.ProviderID != "" && s.unproven() && !s.Deleting():
		s.setBoth(
			metav1.ConditionUnknown,
			clusterv1.MachineNodeInspectionFailedReason,
			"Waiting for "+external.Name(s.infrastructure.ref)+" to report the provider ID",
		)
	case s.Object.Status.NodeRef.IsDefined():
		s.setBoth(metav1.ConditionFalse, clusterv1.MachineNodeDeletedReason,
			sentences("Node "+s.Object.Status.NodeRef.Name+" has been deleted", s.identity.refused))
	case s.Deleting():
		s.setBoth(metav1.ConditionUnknown, clusterv1.MachineNodeDoesNotExistReason, "The Machine has no Node")
	case s.Object.Spec.ProviderID == "":
		s.setBoth(
			metav1.ConditionUnknown,
			clusterv1.MachineNodeInspectionFailedReason,
			"Waiting for "+external.Name(s.infrastructure.ref)+" to report its provider ID",
		)
	default:
		s.setBoth(
			metav1.ConditionUnknown,
			clusterv1.MachineNodeInspectionFailedReason,
			sentences(
				"Waiting for a Node with the provider ID "+s.Object.Spec.ProviderID,
				s.whereToLook(),
				s.identity.contested,
				s.identity.refused,
			),
		)
	}
	return outcome.Continue()
}

// whereToLook names the object whose conditions may report how far the machine has come: its provider observes more of that than the core.
func (s *scope) whereToLook() string {
	if !s.bootstrap.ref.IsDefined() {
		return ""
	}
	return "If none comes, see the conditions of " + external.Name(s.bootstrap.ref)
}

func isOtherMachine(err error) bool {
	var other *OtherMachineError
	return errors.As(err, &other)
}

// sentences joins what is not empty.
func sentences(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ". ")
}

// setDisconnected leaves the conditions as they are for the grace period after the API server answered last: a short outage
// of the API server means nothing about the Nodes.
func (s *scope) setDisconnected() outcome.Outcome {
	known := meta.FindStatusCondition(s.Object.Status.Conditions, clusterv1.MachineNodeHealthyCondition)
	if known != nil && s.disconnection.Reason == shared.NotDialledYet {
		return outcome.Continue()
	}
	end := s.disconnection.LastSuccess.Add(s.options.RemoteConditionsGracePeriod)
	if known != nil && s.Object.Status.NodeRef.IsDefined() && s.Now.Before(end) {
		return outcome.ContinueAfter(end.Sub(s.Now))
	}
	reason := clusterv1.MachineNodeInspectionFailedReason
	if s.Object.Status.NodeRef.IsDefined() {
		reason = clusterv1.MachineNodeConnectionDownReason
	}
	s.setBoth(metav1.ConditionUnknown, reason, s.awaitedConnection())
	return outcome.Continue()
}

// awaitedConnection describes what the connection to the target cluster waits for. Before the Cluster has infrastructure nothing
// tries to connect.
func (s *scope) awaitedConnection() string {
	if s.cluster != nil && s.cluster.Spec.InfrastructureRef.IsDefined() &&
		!ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false) {
		return "Waiting for the infrastructure of Cluster " + s.cluster.Name +
			": see its condition " + clusterv1.ClusterInfrastructureReadyCondition
	}
	return "Waiting for the connection to the target cluster: " + s.disconnection.Message
}

func (s *scope) setBoth(status metav1.ConditionStatus, reason, message string) {
	for _, conditionType := range []string{clusterv1.MachineNodeReadyCondition, clusterv1.MachineNodeHealthyCondition} {
		s.set(metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message})
	}
}

// nodeReady mirrors the Node's condition Ready.
func nodeReady(node *corev1.Node) metav1.Condition {
	const conditionType = clusterv1.MachineNodeReadyCondition
	ready := nodeCondition(node, corev1.NodeReady)
	switch {
	case ready == nil:
		return conditions.Unknown(conditionType, clusterv1.MachineNodeReadyUnknownReason, "Node "+node.Name+" reports no condition Ready yet")
	case ready.Status == corev1.ConditionTrue:
		return conditions.True(conditionType, clusterv1.MachineNodeReadyReason, "")
	case ready.Status == corev1.ConditionFalse:
		return conditions.False(conditionType, clusterv1.MachineNodeNotReadyReason, ready.Message)
	}
	return conditions.Unknown(conditionType, clusterv1.MachineNodeReadyUnknownReason, ready.Message)
}

// nodeHealthy summarizes Ready and the pressures of the Node.
func nodeHealthy(node *corev1.Node) metav1.Condition {
	const conditionType = clusterv1.MachineNodeHealthyCondition
	bad, unknown := false, false
	var lines []string
	for _, check := range []struct {
		condition corev1.NodeConditionType
		good      corev1.ConditionStatus
	}{
		{corev1.NodeReady, corev1.ConditionTrue},
		{corev1.NodeMemoryPressure, corev1.ConditionFalse},
		{corev1.NodeDiskPressure, corev1.ConditionFalse},
		{corev1.NodePIDPressure, corev1.ConditionFalse},
	} {
		have := nodeCondition(node, check.condition)
		switch {
		case have == nil:
			unknown = true
			lines = append(lines, fmt.Sprintf("* Node.%s: not reported yet", check.condition))
			continue
		case have.Status == check.good:
			continue
		case have.Status == corev1.ConditionUnknown:
			unknown = true
		default:
			bad = true
		}
		lines = append(lines, fmt.Sprintf("* Node.%s: %s", check.condition, have.Message))
	}
	message := strings.Join(lines, "\n")
	switch {
	case bad:
		return conditions.False(conditionType, clusterv1.MachineNodeNotHealthyReason, message)
	case unknown:
		return conditions.Unknown(conditionType, clusterv1.MachineNodeHealthUnknownReason, message)
	}
	return conditions.True(conditionType, clusterv1.MachineNodeHealthyReason, "")
}

func nodeCondition(node *corev1.Node, conditionType corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == conditionType {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}
