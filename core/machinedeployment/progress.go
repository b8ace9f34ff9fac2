package machinedeployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/conditions"
	"millwright.dev/core/machineset"
	"millwright.dev/core/outcome"
)

// watchProgress makes the deployment looked at again when its rollout will have made no progress for too long.
func (r *Reconciler) watchProgress(_ context.Context, s *scope) outcome.Outcome {
	return stall(s).And(nextSlow(s))
}

// watchDeletions makes the deployment looked at again when Machines will have been going for long.
func (r *Reconciler) watchDeletions(_ context.Context, s *scope) outcome.Outcome { return nextSlow(s) }

// nextSlow is when the next deletion will have taken so long that conditions name it.
func nextSlow(s *scope) outcome.Outcome {
	end := outcome.Continue()
	for _, machine := range s.allMachines() {
		if machine.DeletionTimestamp.IsZero() {
			continue
		}
		if left := machine.DeletionTimestamp.Add(slowDeletion).Sub(s.now); left > 0 {
			end = end.And(outcome.ContinueAfter(left))
		}
	}
	return end
}

// stall finds out whether the rollout has come to a standstill, and when it will be looked at for that again.
func stall(s *scope) outcome.Outcome {
	deadline, _ := progressDeadline(s.deployment)
	if deadline == 0 || s.settings.paused || len(outdatedSets(s)) == 0 {
		return outcome.Continue()
	}
	s.progress = lastProgress(s)
	if due := s.progress.Add(deadline); s.now.Before(due) {
		return outcome.ContinueAfter(due.Sub(s.now))
	}
	s.stalled = waitedFor(s)
	return outcome.Continue()
}

// lastProgress is when the rollout has last come closer to its end, as far as the objects tell: it began, a set
// was made for it, a Machine of the current set was created or became available, an outdated one began to go. It
// needs no memory, so that a restart of the controller begins no new deadline.
func lastProgress(s *scope) time.Time {
	if s.planned {
		return s.now
	}
	last := s.now
	if rolling := meta.FindStatusCondition(s.before.Status.Conditions, clusterv1.MachineDeploymentRollingOutCondition); rolling != nil && rolling.Status == metav1.ConditionTrue {
		last = rolling.LastTransitionTime.Time
	}
	later := func(t metav1.Time) {
		if t.After(last) {
			last = t.Time
		}
	}
	for _, set := range s.sets {
		isCurrent := s.current != nil && set.UID == s.current.UID
		if isCurrent {
			later(set.CreationTimestamp)
		}
		for _, machine := range s.machines[set.UID] {
			switch available := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineAvailableCondition); {
			case !isCurrent && !machine.DeletionTimestamp.IsZero():
				later(*machine.DeletionTimestamp)
			case isCurrent && available != nil && available.Status == metav1.ConditionTrue:
				later(machine.CreationTimestamp)
				later(available.LastTransitionTime)
			case isCurrent:
				later(machine.CreationTimestamp)
			}
		}
	}
	return last
}

// waitedFor words what the rollout waits for: Machines of the current set that are not available, Machines that
// are being deleted, and sets that cannot create any. Empty when it waits for nothing but a person, as with
// OnDelete.
func waitedFor(s *scope) string {
	var awaited []*clusterv1.Machine
	for _, set := range s.sets {
		isCurrent := s.current != nil && set.UID == s.current.UID
		for _, machine := range s.machines[set.UID] {
			if !machine.DeletionTimestamp.IsZero() || (isCurrent && !machineset.Available(machine)) {
				awaited = append(awaited, machine)
			}
		}
	}
	text := ""
	for _, line := range append(blockedSets(s), idleSets(s)...) {
		text += "\n* " + line
	}
	if len(awaited) > 0 {
		text += "\n" + machineset.Aggregate(awaited, "", machineset.Reasons{}, awaits).Message
	}
	return text
}

// idleSets words which sets have other numbers of Machines than they are told to have, and do nothing about it.
func idleSets(s *scope) []string {
	var lines []string
	for _, set := range s.sets {
		machines := s.machines[set.UID]
		busy := slices.ContainsFunc(machines, func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
		if len(machines) != desired(set) && !busy && len(blockedSets(&scope{sets: []*clusterv1.MachineSet{set}})) == 0 {
			lines = append(lines, fmt.Sprintf("MachineSet %s: %d Machines exist, %d are wanted", set.Name, len(machines), desired(set)))
		}
	}
	return lines
}

// stages are the conditions of a Machine in the order in which it gets through them.
var stages = []string{
	clusterv1.MachineBootstrapConfigReadyCondition,
	clusterv1.MachineInfrastructureReadyCondition,
	clusterv1.MachineNodeReadyCondition,
	clusterv1.MachineNodeHealthyCondition,
	clusterv1.MachineHealthCheckSucceededCondition,
	clusterv1.MachineReadyCondition,
	clusterv1.MachineAvailableCondition,
}

// awaits is what a Machine waits for: the first of its stages that it has not got through.
func awaits(machine *clusterv1.Machine) condition {
	word := func(found *condition) condition {
		return conditions.False("", found.Reason, fmt.Sprintf("%s is %s: %s", found.Type, found.Status, cmp.Or(found.Message, found.Reason)))
	}
	if !machine.DeletionTimestamp.IsZero() {
		if found := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineDeletingCondition); found != nil && found.Status == metav1.ConditionTrue {
			return word(found)
		}
		return conditions.False("", "", "being deleted; Deleting says nothing yet")
	}
	for _, kind := range stages {
		if found := meta.FindStatusCondition(machine.Status.Conditions, kind); found != nil && found.Status != metav1.ConditionTrue {
			return word(found)
		}
	}
	return conditions.False("", "", "none of its conditions is reported yet")
}
