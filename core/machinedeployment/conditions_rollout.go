package machinedeployment

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
)

// rollingOutCondition reports whether Machines are being replaced, how far that is, why they are, and what blocks
// it. Its reason is the most severe one; the message has all of them.
func rollingOutCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineDeploymentRollingOutCondition
	if !s.read {
		return conditions.Unknown(kind, clusterv1.MachineDeploymentRollingOutInternalErrorReason, unread(failure))
	}
	deleting := s.Deleting()
	outdated := outdatedSets(s)
	var lines []string
	if s.rollbackRefused != "" && !deleting {
		lines = append(lines, s.rollbackRefused)
	}
	result := conditions.False(kind, clusterv1.MachineDeploymentNotRollingOutReason, "")
	switch {
	case deleting || (len(outdated) == 0 && !rollsOut(s)):
	case len(s.specErrors) > 0:
		result.Reason = InvalidSpecReason
		lines = append(lines, "See ScalingUp")
	case s.settings.paused:
		result.Reason = RolloutPausedReason
		lines = append(lines, "spec.paused is true; outdated are:", strings.Join(outdated, "\n"))
	default:
		result = conditions.True(kind, clusterv1.MachineDeploymentRollingOutReason, "")
		if s.stalled {
			result.Reason = ProgressDeadlineExceededReason
			lines = append(lines, stalledText(s))
		}
		lines = append(lines, rolloutText(s, outdated)+unsettledText(s)+rejectedDeletions(s))
		if failure != nil {
			lines = append(lines, fmt.Sprintf("The last attempt failed and is repeated: %v", failure))
		}
	}
	if s.rollbackRefused != "" && !deleting {
		result.Reason = RollbackRevisionNotFoundReason
	}
	if !deleting {
		lines = append(lines, rolloutBlockers(s, &result, failure)...)
	}
	result.Message = strings.Join(lines, "\n")
	return result
}

// rolloutBlockers returns what would block a rollout. The first of them becomes the reason where nothing rolls out.
func rolloutBlockers(s *scope, result *condition, failure error) []string {
	var lines []string
	if line := persist.RefusalLine(failure); line != "" && result.Status != metav1.ConditionTrue {
		// While nothing rolls out, no other condition reports it.
		lines = append(lines, line)
		if result.Reason == clusterv1.MachineDeploymentNotRollingOutReason {
			result.Reason = clusterv1.MachineDeploymentRollingOutInternalErrorReason
		}
	}
	mismatches := selectorMismatches(s)
	if len(mismatches) > 0 && result.Reason == clusterv1.MachineDeploymentNotRollingOutReason {
		result.Reason = SelectorMismatchReason
	}
	return append(append(lines, mismatches...), annotationErrors(s.deployment)...)
}

// rollsOut reports whether a rollout continues: until all replicas are up to date and available, whether or not an outdated
// Machine is left. The first Machines of a deployment are a rollout as well. What fails or is scaled up after a rollout
// has been completed is none, until it exceeds the progress deadline.
func rollsOut(s *scope) bool {
	if !underWay(s) {
		return false
	}
	result := meta.FindStatusCondition(s.Original.Status.Conditions, clusterv1.MachineDeploymentRollingOutCondition)
	return s.stalled || s.created || toReplace(s) > 0 || result == nil || result.Status != metav1.ConditionFalse
}

// rolloutText describes how far a rollout is.
func rolloutText(s *scope, outdated []string) string {
	text := fmt.Sprintf("Rolling out: %d of %d replicas are up to date", len(upToDate(s)), wanted(s))
	if len(outdated) > 0 {
		return text + "; outdated are:\n" + strings.Join(outdated, "\n")
	}
	return fmt.Sprintf("%s, %d available", text, len(inService(s)))
}

// unsettledText names the Machines that hold back a rollout, and until when.
func unsettledText(s *scope) string {
	unsettled, until := unsettledMachines(s)
	if len(unsettled) == 0 {
		return ""
	}
	return fmt.Sprintf("\nUntil %s no outdated Machine is deleted: it is not known yet whether %s serve, which were restored or adopted",
		until.UTC().Format(time.RFC3339), machines.ListNames(unsettled))
}

// stalledText describes what a rollout without progress waits for, and since when.
func stalledText(s *scope) string {
	deadline, _ := progressDeadline(s.deployment)
	text := fmt.Sprintf("No progress since %s, for longer than %s", s.progress.UTC().Format(time.RFC3339), deadline)
	if awaited := waitedFor(s); awaited != "" {
		return text + "; the rollout waits for:" + awaited
	}
	return fmt.Sprintf("%s: %d of %d replicas are up to date and available", text, len(inService(s)), wanted(s))
}

// outdatedSets describes which sets have outdated Machines, and why.
func outdatedSets(s *scope) []string {
	var lines []string
	for _, set := range s.sets {
		because := whyOutdated(s, set)
		if all := s.machines[set.UID]; len(because) > 0 && len(all) > 0 {
			lines = append(lines, fmt.Sprintf("* MachineSet %s, %d Machines (%s): %s",
				set.Name, len(all), machines.ListNames(all), strings.Join(because, ", ")))
		}
	}
	return lines
}
