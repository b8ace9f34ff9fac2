package machinedeployment

import (
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

// Reasons that Cluster API does not have.
const (
	// InvalidSpecReason means that the spec must be corrected; the message names field and remedy.
	InvalidSpecReason = machines.InvalidSpecReason
	// RolloutPausedReason means that Machines are outdated and stay so while spec.paused is true.
	RolloutPausedReason = "RolloutPaused"
	// ProgressDeadlineExceededReason means that what is wanted has been missing for longer than the deadline, without
	// progress; the message names the Machines and what they wait for.
	ProgressDeadlineExceededReason = "ProgressDeadlineExceeded"
	// SelectorMismatchReason means that the selector of a MachineSet does not match the labels that the deployment
	// would give to its Machines: it is not adopted, or keeps its labels.
	SelectorMismatchReason = "SelectorMismatch"
	// RollbackRevisionNotFoundReason means that RollbackToAnnotation names no revision that is kept.
	RollbackRevisionNotFoundReason = "RollbackRevisionNotFound"
)

// derivations are the conditions of a deployment, each a function of the scope alone.
var derivations = []func(*scope, error) condition{
	availableCondition,
	machinesReadyCondition,
	machinesUpToDateCondition,
	rollingOutCondition,
	scalingUpCondition,
	scalingDownCondition,
	remediatingCondition,
	remediationAllowedCondition,
	frozenCondition,
	deletingCondition,
}

// availableCondition is True while enough Machines serve: as many as maxUnavailable asks for, and at least one where any
// is wanted.
func availableCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineDeploymentAvailableCondition
	if !s.read {
		return conditions.Unknown(kind, clusterv1.MachineDeploymentAvailableInternalErrorReason, unread(failure))
	}
	available, minimum := availableMachines(s), max(wanted(s)-s.settings.maxUnavailable, min(wanted(s), 1))
	switch {
	case s.Deleting():
		return conditions.False(kind, clusterv1.MachineDeploymentNotAvailableReason, "Deletion in progress")
	case len(s.specErrors) > 0:
		return conditions.Unknown(kind, InvalidSpecReason, "See ScalingUp")
	case available >= minimum:
		return conditions.True(kind, clusterv1.MachineDeploymentAvailableReason, "")
	}
	return conditions.False(kind, clusterv1.MachineDeploymentNotAvailableReason, fmt.Sprintf(
		"%d available replicas, at least %d required (spec.replicas is %d, maxUnavailable %d)",
		available, minimum, wanted(s), s.settings.maxUnavailable))
}

func machinesReadyCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineDeploymentMachinesReadyCondition
	if !s.read {
		return conditions.Unknown(kind, clusterv1.MachineDeploymentMachinesReadyInternalErrorReason, unread(failure))
	}
	return machines.Aggregate(s.allMachines(), kind, machines.Reasons{
		Good: clusterv1.MachineDeploymentMachinesReadyReason, Bad: clusterv1.MachineDeploymentMachinesNotReadyReason,
		Unknown: clusterv1.MachineDeploymentMachinesReadyUnknownReason, None: clusterv1.MachineDeploymentMachinesReadyNoReplicasReason,
	}, func(machine *clusterv1.Machine) condition {
		return machines.ConditionOf(machine, clusterv1.MachineReadyCondition)
	})
}

func machinesUpToDateCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineDeploymentMachinesUpToDateCondition
	if !s.read {
		return conditions.Unknown(kind, clusterv1.MachineDeploymentMachinesUpToDateInternalErrorReason, unread(failure))
	}
	outdated := outdatedSets(s)
	switch {
	case existing(s) == 0:
		return conditions.True(kind, clusterv1.MachineDeploymentMachinesUpToDateNoReplicasReason, "")
	case len(outdated) == 0:
		return conditions.True(kind, clusterv1.MachineDeploymentMachinesUpToDateReason, "")
	}
	return conditions.False(kind, clusterv1.MachineDeploymentMachinesNotUpToDateReason, strings.Join(outdated, "\n"))
}

// scalingUpCondition also passes on what keeps a set from creating Machines.
func scalingUpCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineDeploymentScalingUpCondition
	deleting := s.Deleting()
	if len(s.specErrors) > 0 && !deleting {
		return conditions.True(kind, InvalidSpecReason, machines.List("The spec of the MachineDeployment is invalid; correct it:", s.specErrors))
	}
	if !s.read {
		return conditions.Unknown(kind, clusterv1.MachineDeploymentScalingUpInternalErrorReason, unread(failure))
	}
	blocked := blockedSets(s)
	if deleting || (existing(s) >= wanted(s) && len(blocked) == 0) {
		return conditions.False(kind, clusterv1.MachineDeploymentNotScalingUpReason, "")
	}
	if existing(s) >= wanted(s) {
		return conditions.True(kind, machines.BlockedReason, machines.List("Machines cannot be created, completed or updated:", blocked))
	}
	message := fmt.Sprintf("Scaling up from %d to %d replicas", existing(s), wanted(s))
	switch {
	case len(blocked) > 0:
		return conditions.True(kind, machines.BlockedReason, machines.List(message+" is blocked:", blocked))
	case failure != nil:
		message += fmt.Sprintf(": the last attempt failed and is repeated: %v", failure)
	}
	return conditions.True(kind, clusterv1.MachineDeploymentScalingUpReason, message)
}

// blockedSets describes blocks sets that cannot create Machines, or whose requests are refused.
func blockedSets(s *scope) []string {
	lines := slices.Clone(s.blockers)
	for _, set := range s.sets {
		if blocker := machines.Blocker(set); blocker != "" {
			lines = append(lines, fmt.Sprintf("MachineSet %s: %s", set.Name, strings.ReplaceAll(blocker, "\n", "\n  ")))
		}
	}
	return lines
}

func scalingDownCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineDeploymentScalingDownCondition
	if !s.read {
		return conditions.Unknown(kind, clusterv1.MachineDeploymentScalingDownInternalErrorReason, unread(failure))
	}
	if existing(s) <= wanted(s) {
		return conditions.False(kind, clusterv1.MachineDeploymentNotScalingDownReason, "")
	}
	message := fmt.Sprintf("Scaling down from %d to %d replicas", existing(s), wanted(s))
	if failure != nil {
		message += fmt.Sprintf(": the last attempt failed and is repeated: %v", failure)
	}
	message += machines.SlowDeletions(s.allMachines(), s.Now) + rejectedDeletions(s)
	return conditions.True(kind, clusterv1.MachineDeploymentScalingDownReason, message)
}

// rejectedDeletions lists, for a message, why sets cannot delete Machines.
func rejectedDeletions(s *scope) string {
	text := ""
	for _, set := range s.sets {
		if why := machines.RejectedDeletion(set); why != "" {
			text += fmt.Sprintf("\n* MachineSet %s cannot delete Machines: %s", set.Name, strings.ReplaceAll(why, "\n", "\n  "))
		}
	}
	return text
}

func remediatingCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineDeploymentRemediatingCondition
	if !s.read {
		return conditions.Unknown(kind, clusterv1.MachineDeploymentRemediatingInternalErrorReason, unread(failure))
	}
	remediated := machines.Remediated(s.allMachines())
	if len(remediated) == 0 {
		return conditions.False(kind, clusterv1.MachineDeploymentNotRemediatingReason, "")
	}
	return conditions.True(kind, clusterv1.MachineDeploymentRemediatingReason, "Unhealthy Machines: "+machines.ListNames(remediated))
}

func deletingCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineDeploymentDeletingCondition
	if !s.Deleting() {
		return conditions.False(kind, clusterv1.MachineDeploymentNotDeletingReason, "")
	}
	message := "All MachineSets are gone"
	if len(s.sets) > 0 {
		names := make([]string, 0, len(s.sets))
		for _, set := range s.sets {
			names = append(names, fmt.Sprintf("%s (%d Machines)", set.Name, len(s.machines[set.UID])))
		}
		message = "Waiting for the deletion of MachineSets " + strings.Join(names, ", ") + machines.SlowDeletions(s.allMachines(), s.Now) +
			rejectedDeletions(s)
	}
	if line := persist.RefusalLine(failure); line != "" {
		message += "\n" + line
	}
	return conditions.True(kind, clusterv1.MachineDeploymentDeletingReason, message)
}

// unread reports that what the status is derived from is not known.
func unread(failure error) string { return machines.Unread("MachineSets and their Machines", failure) }
