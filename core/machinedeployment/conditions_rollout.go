package machinedeployment

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/conditions"
	"millwright.dev/core/machineset"
)

// rollingOutCondition says whether Machines are being replaced, how far that is, why they are, and what keeps it
// up. Its reason tells the worst of what is the matter; the message has all of it.
func rollingOutCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineDeploymentRollingOutCondition
	if !s.read {
		return conditions.Unknown(kind, clusterv1.MachineDeploymentRollingOutInternalErrorReason, unread(failure))
	}
	deleting := !s.deployment.DeletionTimestamp.IsZero()
	outdated := outdatedSets(s)
	var lines []string
	if s.rollbackRefused != "" && !deleting {
		lines = append(lines, s.rollbackRefused)
	}
	said := conditions.False(kind, clusterv1.MachineDeploymentNotRollingOutReason, "")
	switch {
	case len(outdated) == 0 || deleting:
	case len(s.problems) > 0:
		said.Reason = InvalidSpecReason
		lines = append(lines, "See ScalingUp")
	case s.settings.paused:
		said.Reason = RolloutPausedReason
		lines = append(lines, "spec.paused is true; outdated are:", strings.Join(outdated, "\n"))
	default:
		said = conditions.True(kind, clusterv1.MachineDeploymentRollingOutReason, "")
		if s.stalled != "" {
			said.Reason = ProgressDeadlineExceededReason
			lines = append(lines, stalledText(s))
		}
		lines = append(lines, fmt.Sprintf("Rolling out: %d of %d replicas are up to date; outdated are:", len(upToDate(s)), wanted(s)),
			strings.Join(outdated, "\n"))
	}
	if s.rollbackRefused != "" && !deleting {
		said.Reason = RollbackRevisionNotFoundReason
	}
	if !deleting {
		lines = append(lines, mistakes(s.deployment)...)
	}
	said.Message = strings.Join(lines, "\n")
	return said
}

// stalledText words what a rollout without progress waits for, and since when.
func stalledText(s *scope) string {
	deadline, _ := progressDeadline(s.deployment)
	return fmt.Sprintf("No progress since %s, for longer than %s; the rollout waits for:%s",
		s.progress.UTC().Format(time.RFC3339), deadline, s.stalled)
}

// outdatedSets words which sets have outdated Machines, and why.
func outdatedSets(s *scope) []string {
	var lines []string
	for _, set := range s.sets {
		because := machineset.Outdated(s.deployment, set, s.now)
		if machines := s.machines[set.UID]; len(because) > 0 && len(machines) > 0 {
			lines = append(lines, fmt.Sprintf("* MachineSet %s, %d Machines (%s): %s",
				set.Name, len(machines), machineset.ListNames(machines), strings.Join(because, ", ")))
		}
	}
	return lines
}

// slowDeletion is how long the deletion of a Machine takes before the conditions of its deployment name it.
const slowDeletion = 15 * time.Minute

// slowDeletions words which Machines have been going for long, and what they wait for.
func slowDeletions(s *scope) string {
	var slow []*clusterv1.Machine
	for _, machine := range s.allMachines() {
		if !machine.DeletionTimestamp.IsZero() && s.now.Sub(machine.DeletionTimestamp.Time) >= slowDeletion {
			slow = append(slow, machine)
		}
	}
	if len(slow) == 0 {
		return ""
	}
	return fmt.Sprintf("\nIn deletion for more than %s:\n", slowDeletion) +
		machineset.Aggregate(slow, "", machineset.Reasons{}, awaits).Message
}
