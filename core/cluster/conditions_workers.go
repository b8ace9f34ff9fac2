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

// aggregation describes a condition that aggregates one condition of several objects.
type aggregation struct {
	// conditionType is the type of the aggregated condition, of that of the objects.
	conditionType, of string
	// good, bad and unknown are the reasons; none is that for no objects.
	good, bad, unknown, none string
	// negative means that True is bad, as for ScalingUp: one that is True makes the aggregate True.
	negative bool
	// optional means that an object without the condition does not count.
	optional bool
}

// setWorkerConditions sets the conditions about Machines.
func (s *scope) setWorkerConditions() {
	w := s.workers
	if w == nil {
		return
	}
	owners := slices.Concat(w.deployments, w.sets)
	s.set(aggregate(workersAvailable, w.deployments))
	s.set(aggregateSources(clusterv1.ClusterWorkerMachinesReadyCondition,
		ready(clusterv1.MachinesReadyCondition, owners), ready(clusterv1.ReadyCondition, w.machines)))
	s.set(aggregateSources(clusterv1.ClusterWorkerMachinesUpToDateCondition,
		upToDate(clusterv1.MachinesUpToDateCondition, owners), upToDate(clusterv1.MachineUpToDateCondition, w.machines)))
	s.set(aggregateSources(clusterv1.ClusterControlPlaneMachinesReadyCondition, ready(clusterv1.ReadyCondition, w.controlPlane)))
	s.set(aggregateSources(clusterv1.ClusterControlPlaneMachinesUpToDateCondition,
		upToDate(clusterv1.MachineUpToDateCondition, w.controlPlane)))
	s.set(aggregate(rollingOut, w.deployments))
	s.set(aggregate(scalingUp, owners))
	s.set(aggregate(scalingDown, owners))
	s.set(aggregate(remediating, owners))
}

// The conditions that are aggregated from one kind of condition.
var (
	workersAvailable = aggregation{
		conditionType: clusterv1.ClusterWorkersAvailableCondition,
		of:            clusterv1.AvailableCondition,
		good:          clusterv1.ClusterWorkersAvailableReason,
		bad:           clusterv1.ClusterWorkersNotAvailableReason,
		unknown:       clusterv1.ClusterWorkersAvailableUnknownReason,
		none:          clusterv1.ClusterWorkersAvailableNoWorkersReason,
	}
	rollingOut = inProgress(clusterv1.ClusterRollingOutCondition, clusterv1.ClusterRollingOutReason,
		clusterv1.ClusterNotRollingOutReason, clusterv1.ClusterRollingOutUnknownReason)
	scalingUp = inProgress(clusterv1.ClusterScalingUpCondition, clusterv1.ClusterScalingUpReason,
		clusterv1.ClusterNotScalingUpReason, clusterv1.ClusterScalingUpUnknownReason)
	scalingDown = inProgress(clusterv1.ClusterScalingDownCondition, clusterv1.ClusterScalingDownReason,
		clusterv1.ClusterNotScalingDownReason, clusterv1.ClusterScalingDownUnknownReason)
	remediating = inProgress(clusterv1.ClusterRemediatingCondition, clusterv1.ClusterRemediatingReason,
		clusterv1.ClusterNotRemediatingReason, clusterv1.ClusterRemediatingInternalErrorReason)
)

// source is one kind of objects that a condition is aggregated from.
type source struct {
	aggregation aggregation
	parts       []part
}

func ready(of string, parts []part) source {
	return source{
		aggregation{
			of:      of,
			good:    clusterv1.ReadyReason,
			bad:     clusterv1.NotReadyReason,
			unknown: clusterv1.ReadyUnknownReason,
			none:    clusterv1.NoReplicasReason,
		},
		parts,
	}
}

// upToDate does not count objects that are not compared with a template, such as Machines that a user has created.
func upToDate(of string, parts []part) source {
	return source{
		aggregation{
			of:       of,
			good:     clusterv1.UpToDateReason,
			bad:      clusterv1.NotUpToDateReason,
			unknown:  clusterv1.UpToDateUnknownReason,
			none:     clusterv1.NoReplicasReason,
			optional: true,
		},
		parts,
	}
}

// inProgress describes a condition that is True while something is in progress; without objects nothing is.
func inProgress(conditionType, bad, good, unknown string) aggregation {
	return aggregation{conditionType: conditionType, of: conditionType, good: good, bad: bad, unknown: unknown, none: good, negative: true}
}

// aggregateSources aggregates objects that have the condition under different types.
func aggregateSources(conditionType string, sources ...source) metav1.Condition {
	merged := sources[0].aggregation
	merged.conditionType, merged.of = conditionType, conditionType
	var parts []part
	for _, from := range sources {
		for _, one := range from.parts {
			renamed := part{name: one.name}
			if found := find(one.conditions, from.aggregation.of); found != nil {
				copied := *found
				copied.Type = conditionType
				renamed.conditions = []metav1.Condition{copied}
			}
			parts = append(parts, renamed)
		}
	}
	return aggregate(merged, parts)
}

// aggregate aggregates one condition of all parts: bad if one is bad, else Unknown if one is unknown or missing, else good.
func aggregate(a aggregation, parts []part) metav1.Condition {
	statusOf := map[string]metav1.ConditionStatus{"good": metav1.ConditionTrue, "bad": metav1.ConditionFalse}
	if a.negative {
		statusOf = map[string]metav1.ConditionStatus{"good": metav1.ConditionFalse, "bad": metav1.ConditionTrue}
	}
	counted, bad, unknown := 0, false, false
	var lines []string
	for _, one := range parts {
		found := find(one.conditions, a.of)
		if found == nil && a.optional {
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
	condition := metav1.Condition{Type: a.conditionType, Status: statusOf["good"], Reason: a.good, Message: limited(lines)}
	switch {
	case counted == 0:
		condition.Reason = a.none
	case bad:
		condition.Status, condition.Reason = statusOf["bad"], a.bad
	case unknown:
		condition.Status, condition.Reason = metav1.ConditionUnknown, a.unknown
	}
	return condition
}

// limited shortens a message to the first few lines, and how many more there are.
func limited(lines []string) string {
	if len(lines) > namedInMessage {
		lines = append(slices.Clone(lines[:namedInMessage]), fmt.Sprintf("* and %d more", len(lines)-namedInMessage))
	}
	return strings.Join(lines, "\n")
}

func find(list []metav1.Condition, conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(list, conditionType)
}

// availabilityParts are the conditions that Available summarizes, those of spec.availabilityGates among them.
func (s *scope) availabilityParts() []conditions.Part {
	parts := []conditions.Part{
		{Type: clusterv1.ClusterDeletingCondition, Negative: true},
		{Type: clusterv1.ClusterRemoteConnectionProbeCondition},
		{Type: clusterv1.ClusterInfrastructureReadyCondition},
		{Type: clusterv1.ClusterControlPlaneAvailableCondition},
		{Type: clusterv1.ClusterControlPlaneInitializedCondition},
		{Type: clusterv1.ClusterWorkersAvailableCondition, Optional: true},
	}
	for _, gate := range s.Object.Spec.AvailabilityGates {
		parts = append(parts, conditions.Part{Type: gate.ConditionType, Negative: gate.Polarity == clusterv1.NegativePolarityCondition})
	}
	return parts
}
