package machine

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// updatingCondition derives Updating: whether the machine is being updated in place. The core does not do that by itself: who does
// sets an annotation for the time (docs/decisions/0006).
func (s *scope) updatingCondition() metav1.Condition {
	if !machines.Updating(s.Object) {
		return conditions.False(clusterv1.MachineUpdatingCondition, clusterv1.MachineNotUpdatingReason, "")
	}
	return conditions.True(clusterv1.MachineUpdatingCondition, clusterv1.MachineInPlaceUpdatingReason,
		"In-place update in progress; the updater ends it by removing the annotation "+clusterv1.UpdateInProgressAnnotation)
}

// setUpToDateCondition compares the Machine's MachineSet with its MachineDeployment; other Machines have no such
// condition. The kubelet's version does not count: images bring kubelets of other patch versions than spec.version (EKS images have
// a clock of their own), and no update that this core performs would change that. The outcome is the moment of the next rollout.
func (s *scope) setUpToDateCondition() outcome.Outcome {
	const conditionType = clusterv1.MachineUpToDateCondition
	if s.machineSet == nil || s.machineDeployment == nil {
		return outcome.Continue()
	}
	deadline := outcome.Continue()
	// The creation time of the set does not count here: it is a time of the API server's clock.
	if rest := s.machineDeployment.Spec.Rollout.After.Sub(s.Now); rest > 0 {
		deadline = outcome.ContinueAfter(rest)
	}
	switch because := machines.Outdated(s.machineDeployment, s.machineSet, s.Now); {
	case len(because) > 0:
		s.set(conditions.False(conditionType, clusterv1.MachineNotUpToDateReason, strings.Join(because, ", ")))
	case machines.Updating(s.Object):
		s.set(conditions.False(conditionType, clusterv1.MachineUpToDateUpdatingReason, "In-place update in progress"))
	default:
		s.set(conditions.True(conditionType, clusterv1.MachineUpToDateReason, ""))
	}
	return deadline
}
