package machineset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
)

type condition = metav1.Condition

// notReplaceableReason is the reason of RemediationAllowed when no Machine could be created in the place of an unhealthy one.
const notReplaceableReason = "NotReplaceable"

// derivations are the conditions of a set, each a function of the scope alone.
var derivations = []func(*scope, error) condition{
	scalingUpCondition,
	scalingDownCondition,
	machinesReadyCondition,
	machinesUpToDateCondition,
	remediatingCondition,
	remediationAllowedCondition,
	frozenCondition,
	deletingCondition,
}

// wanted is how many Machines there shall be.
func wanted(s *scope) int {
	if s.Deleting() {
		return 0
	}
	return s.replicas
}

// scalingUpCondition also reports what blocks the creation of Machines, even while none is missing, and which cannot be
// completed.
func scalingUpCondition(s *scope, failure error) condition {
	result := scalingUp(s, failure)
	line, tooMany := persist.RefusalLine(failure), len(s.machines) > wanted(s)
	if line != "" && result.Reason == clusterv1.MachineSetNotScalingUpReason && !tooMany {
		// While no Machine is missing and none is too many, no other condition reports it.
		result.Reason = clusterv1.MachineSetScalingUpInternalErrorReason
		result.Message = strings.TrimPrefix(result.Message+"\n"+line, "\n")
	}
	if len(s.machineErrors) > 0 {
		result.Message = strings.TrimPrefix(result.Message+"\n"+machines.List("Machines that cannot be completed:", s.machineErrors), "\n")
	}
	return result
}

func scalingUp(s *scope, failure error) condition {
	const kind = clusterv1.MachineSetScalingUpCondition
	deleting := s.Deleting()
	if len(s.specErrors) > 0 && !deleting {
		return conditions.True(kind, machines.InvalidSpecReason,
			machines.List("The spec of the MachineSet is invalid; correct it:", s.specErrors))
	}
	if !s.machinesRead {
		return conditions.Unknown(kind, clusterv1.MachineSetScalingUpInternalErrorReason, unread(failure))
	}
	missing := wanted(s) - len(s.machines)
	disabled := s.Object.Annotations[clusterv1.DisableMachineCreateAnnotation] == "true"
	switch {
	case missing <= 0 && len(s.refusals) > 0:
		return conditions.True(kind, machines.BlockedReason, machines.List("Machines cannot be completed:", firstOf(s.refusals)))
	case missing <= 0 && len(s.blockers) > 0:
		return conditions.False(kind, clusterv1.MachineSetNotScalingUpReason, machines.List("Scaling up would be blocked:", s.blockers))
	case missing <= 0:
		return conditions.False(kind, clusterv1.MachineSetNotScalingUpReason, "")
	case disabled:
		return conditions.False(kind, clusterv1.MachineSetNotScalingUpReason, fmt.Sprintf(
			"%s missing, and creation is disabled by the annotation %s",
			machines.Plural(missing, "Machine"),
			clusterv1.DisableMachineCreateAnnotation,
		))
	}
	message := fmt.Sprintf("Scaling up from %d to %d replicas", len(s.machines), wanted(s))
	switch {
	case s.blocked():
		return conditions.True(kind, machines.BlockedReason,
			machines.List(message+" is blocked:", slices.Concat(s.blockers, firstOf(s.refusals))))
	case failure != nil:
		message += fmt.Sprintf(": the last attempt failed and is repeated: %v", failure)
	}
	return conditions.True(kind, clusterv1.MachineSetScalingUpReason, message)
}

// firstOf is the first of the texts in their order, and how many others there are. They come in any order.
func firstOf(texts []string) []string {
	if len(texts) < 2 {
		return texts
	}
	return []string{fmt.Sprintf("%s (and %s)", slices.Min(texts), machines.Plural(len(texts)-1, "other"))}
}

func scalingDownCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineSetScalingDownCondition
	if len(s.specErrors) > 0 && !s.Deleting() {
		return conditions.Unknown(kind, machines.InvalidSpecReason, "See ScalingUp")
	}
	if !s.machinesRead {
		return conditions.Unknown(kind, clusterv1.MachineSetScalingDownInternalErrorReason, unread(failure))
	}
	if len(s.machines) <= wanted(s) {
		return conditions.False(kind, clusterv1.MachineSetNotScalingDownReason, "")
	}
	message := fmt.Sprintf(
		"Scaling down from %d to %d replicas; being deleted: %s",
		len(s.machines),
		wanted(s),
		cmp.Or(machines.ListNames(deletingMachines(s)), "none"),
	)
	message += machines.SlowDeletions(s.machines, s.Now)
	if line := persist.RefusalLine(failure); line != "" {
		message += "\n" + line
	} else if failure != nil {
		message += fmt.Sprintf("\nThe last attempt failed and is repeated: %v", failure)
	}
	return conditions.True(kind, clusterv1.MachineSetScalingDownReason, message)
}

func machinesReadyCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineSetMachinesReadyCondition
	if !s.machinesRead {
		return conditions.Unknown(kind, clusterv1.MachineSetMachinesReadyInternalErrorReason, unread(failure))
	}
	return machines.Aggregate(s.machines, kind, machines.Reasons{
		Good: clusterv1.MachineSetMachinesReadyReason, Bad: clusterv1.MachineSetMachinesNotReadyReason,
		Unknown: clusterv1.MachineSetMachinesReadyUnknownReason, None: clusterv1.MachineSetMachinesReadyNoReplicasReason,
	}, func(machine *clusterv1.Machine) condition {
		return machines.ConditionOf(machine, clusterv1.MachineReadyCondition)
	})
}

func machinesUpToDateCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineSetMachinesUpToDateCondition
	if !s.machinesRead {
		return conditions.Unknown(kind, clusterv1.MachineSetMachinesUpToDateInternalErrorReason, unread(failure))
	}
	return machines.Aggregate(s.machines, kind, machines.Reasons{
		Good: clusterv1.MachineSetMachinesUpToDateReason, Bad: clusterv1.MachineSetMachinesNotUpToDateReason,
		Unknown: clusterv1.MachineSetMachinesUpToDateUnknownReason, None: clusterv1.MachineSetMachinesUpToDateNoReplicasReason,
	}, func(machine *clusterv1.Machine) condition { return upToDateCondition(s, machine) })
}

func deletingCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineSetDeletingCondition
	if !s.Deleting() {
		return conditions.False(kind, clusterv1.MachineSetNotDeletingReason, "")
	}
	message := "All Machines are gone"
	if len(s.machines) > 0 {
		message = fmt.Sprintf("Waiting for the deletion of %s: %s", machines.Plural(len(s.machines), "Machine"), machines.ListNames(s.machines))
		message += machines.SlowDeletions(s.machines, s.Now)
	}
	if line := persist.RefusalLine(failure); line != "" {
		message += "\n" + line
	}
	return conditions.True(kind, clusterv1.MachineSetDeletingReason, message)
}

func deletingMachines(s *scope) []*clusterv1.Machine {
	var deleting []*clusterv1.Machine
	for _, machine := range machines.ByDeletion(s.machines, "") {
		if !machine.DeletionTimestamp.IsZero() {
			deleting = append(deleting, machine)
		}
	}
	return deleting
}

// unread reports that what the status is derived from is not known.
func unread(failure error) string { return machines.Unread("Machines", failure) }
