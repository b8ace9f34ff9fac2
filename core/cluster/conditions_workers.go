package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// joint describes a condition that sums up one of several objects.
type joint struct {
	// conditionType is the type of the sum, of that of the parts.
	conditionType, of string
	// good, bad and unknown are the reasons; none is that for no parts.
	good, bad, unknown, none string
	// negative means that True is bad, as for ScalingUp, and then that is what counts most.
	negative bool
	// optional means that a part without the condition does not count.
	optional bool
}

// setWorkerConditions concludes what there is to say of Machines.
func (s *scope) setWorkerConditions() {
	w := s.workers
	if w == nil {
		return
	}
	owners := slices.Concat(w.deployments, w.sets)
	s.set(sum(joint{
		conditionType: clusterv1.ClusterWorkersAvailableCondition, of: clusterv1.AvailableCondition, good: clusterv1.ClusterWorkersAvailableReason,
		bad: clusterv1.ClusterWorkersNotAvailableReason, unknown: clusterv1.ClusterWorkersAvailableUnknownReason, none: clusterv1.ClusterWorkersAvailableNoWorkersReason,
	}, w.deployments))
	s.set(summed(clusterv1.ClusterWorkerMachinesReadyCondition, ready(clusterv1.MachinesReadyCondition, owners), ready(clusterv1.ReadyCondition, w.machines)))
	s.set(summed(clusterv1.ClusterWorkerMachinesUpToDateCondition, upToDate(clusterv1.MachinesUpToDateCondition, owners), upToDate(clusterv1.MachineUpToDateCondition, w.machines)))
	s.set(summed(clusterv1.ClusterControlPlaneMachinesReadyCondition, ready(clusterv1.ReadyCondition, w.controlPlane)))
	s.set(summed(clusterv1.ClusterControlPlaneMachinesUpToDateCondition, upToDate(clusterv1.MachineUpToDateCondition, w.controlPlane)))
	s.set(sum(doing(clusterv1.ClusterRollingOutCondition, clusterv1.ClusterRollingOutReason, clusterv1.ClusterNotRollingOutReason, clusterv1.ClusterRollingOutUnknownReason), w.deployments))
	s.set(sum(doing(clusterv1.ClusterScalingUpCondition, clusterv1.ClusterScalingUpReason, clusterv1.ClusterNotScalingUpReason, clusterv1.ClusterScalingUpUnknownReason), owners))
	s.set(sum(doing(clusterv1.ClusterScalingDownCondition, clusterv1.ClusterScalingDownReason, clusterv1.ClusterNotScalingDownReason, clusterv1.ClusterScalingDownUnknownReason), owners))
	s.set(sum(doing(clusterv1.ClusterRemediatingCondition, clusterv1.ClusterRemediatingReason, clusterv1.ClusterNotRemediatingReason, clusterv1.ClusterRemediatingInternalErrorReason), owners))
}

// piece is what one joint makes of its parts.
type piece struct {
	joint joint
	parts []part
}

func ready(of string, parts []part) piece {
	return piece{joint{of: of, good: clusterv1.ReadyReason, bad: clusterv1.NotReadyReason, unknown: clusterv1.ReadyUnknownReason, none: clusterv1.NoReplicasReason}, parts}
}

// upToDate does not count what nobody has compared with a template, as Machines that were made by hand.
func upToDate(of string, parts []part) piece {
	return piece{joint{of: of, good: clusterv1.UpToDateReason, bad: clusterv1.NotUpToDateReason, unknown: clusterv1.UpToDateUnknownReason, none: clusterv1.NoReplicasReason, optional: true}, parts}
}

// doing describes a condition that says that something is going on; without parts nothing is.
func doing(conditionType, bad, good, unknown string) joint {
	return joint{conditionType: conditionType, of: conditionType, good: good, bad: bad, unknown: unknown, none: good, negative: true}
}

// summed sums up pieces that have the condition under different names.
func summed(conditionType string, pieces ...piece) metav1.Condition {
	merged := pieces[0].joint
	merged.conditionType, merged.of = conditionType, conditionType
	var parts []part
	for _, p := range pieces {
		for _, one := range p.parts {
			renamed := part{name: one.name}
			if found := find(one.conditions, p.joint.of); found != nil {
				copied := *found
				copied.Type = conditionType
				renamed.conditions = []metav1.Condition{copied}
			}
			parts = append(parts, renamed)
		}
	}
	return sum(merged, parts)
}

// sum sums up one condition of all parts: bad if one is bad, else Unknown if one is unknown or missing, else good.
func sum(j joint, parts []part) metav1.Condition {
	statusOf := map[string]metav1.ConditionStatus{"good": metav1.ConditionTrue, "bad": metav1.ConditionFalse}
	if j.negative {
		statusOf = map[string]metav1.ConditionStatus{"good": metav1.ConditionFalse, "bad": metav1.ConditionTrue}
	}
	counted, bad, unknown := 0, false, false
	var lines []string
	for _, one := range parts {
		found := find(one.conditions, j.of)
		if found == nil && j.optional {
			continue
		}
		counted++
		switch {
		case found == nil:
			unknown = true
			lines = append(lines, "* "+one.name+": not reported yet")
			continue
		case found.Status == statusOf["good"]:
			continue
		case found.Status == statusOf["bad"]:
			bad = true
		default:
			unknown = true
		}
		lines = append(lines, "* "+one.name+": "+strings.ReplaceAll(cmp.Or(found.Message, found.Reason), "\n", "\n  "))
	}
	condition := metav1.Condition{Type: j.conditionType, Status: statusOf["good"], Reason: j.good, Message: limited(lines)}
	switch {
	case counted == 0:
		condition.Reason = j.none
	case bad:
		condition.Status, condition.Reason = statusOf["bad"], j.bad
	case unknown:
		condition.Status, condition.Reason = metav1.ConditionUnknown, j.unknown
	}
	return condition
}

// limited keeps messages short: the first few lines, and how many more there are.
func limited(lines []string) string {
	if len(lines) > namedInMessage {
		lines = append(slices.Clone(lines[:namedInMessage]), fmt.Sprintf("* and %d more", len(lines)-namedInMessage))
	}
	return strings.Join(lines, "\n")
}

func find(list []metav1.Condition, conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(list, conditionType)
}

// availabilityParts are what makes a Cluster Available, its own gates among them.
func (s *scope) availabilityParts() []conditions.Part {
	parts := []conditions.Part{
		{Type: clusterv1.ClusterDeletingCondition, Negative: true},
		{Type: clusterv1.ClusterRemoteConnectionProbeCondition},
		{Type: clusterv1.ClusterInfrastructureReadyCondition},
		{Type: clusterv1.ClusterControlPlaneAvailableCondition},
		{Type: clusterv1.ClusterControlPlaneInitializedCondition},
		{Type: clusterv1.ClusterWorkersAvailableCondition, Optional: true},
	}
	for _, gate := range s.cluster.Spec.AvailabilityGates {
		parts = append(parts, conditions.Part{Type: gate.ConditionType, Negative: gate.Polarity == clusterv1.NegativePolarityCondition})
	}
	return parts
}
