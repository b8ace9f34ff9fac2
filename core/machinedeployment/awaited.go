package machinedeployment

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
)

// waitedFor describes what a deployment waits for: Machines of the current set that are not available, Machines that are being
// deleted, and sets that cannot create any.
func waitedFor(s *scope) string {
	var awaited []*clusterv1.Machine
	for _, set := range s.sets {
		isCurrent := s.current != nil && set.UID == s.current.UID
		for _, machine := range s.machines[set.UID] {
			if !machine.DeletionTimestamp.IsZero() || (isCurrent && !machines.Available(machine)) {
				awaited = append(awaited, machine)
			}
		}
	}
	text := ""
	for _, line := range append(blockedSets(s), idleSets(s)...) {
		text += "\n* " + line
	}
	if len(awaited) > 0 {
		text += "\n" + machines.Aggregate(awaited, "", machines.Reasons{}, awaits).Message
	}
	return text
}

// idleSets describes which sets have other numbers of Machines than their spec asks for, and do nothing about it.
func idleSets(s *scope) []string {
	var lines []string
	for _, set := range s.sets {
		machines := s.machines[set.UID]
		busy := slices.ContainsFunc(machines, func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
		if len(machines) != desired(set) && !busy && len(blockedSets(&scope{sets: []*clusterv1.MachineSet{set}})) == 0 {
			lines = append(lines, fmt.Sprintf("MachineSet %s: %d Machines exist, %d are desired", set.Name, len(machines), desired(set)))
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
		if found := meta.FindStatusCondition(
			machine.Status.Conditions,
			clusterv1.MachineDeletingCondition,
		); found != nil &&
			found.Status == metav1.ConditionTrue {
			return word(found)
		}
		return conditions.False("", "", "being deleted")
	}
	for _, kind := range stages {
		if found := meta.FindStatusCondition(machine.Status.Conditions, kind); found != nil && found.Status != metav1.ConditionTrue {
			return word(found)
		}
	}
	return conditions.False("", "", "no conditions are reported yet")
}
