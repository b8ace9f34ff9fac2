package machine

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// inPlaceUpdateGrace is the time for which the hook UpdateMachine may be pending before the Machine reports that nothing will answer it.
const inPlaceUpdateGrace = time.Minute

// updatingCondition derives Updating: whether the machine is being updated in place. The core performs no such updates; another
// updater sets an annotation while it works (docs/decisions/0006). An owner with Cluster API's feature gate InPlaceUpdates waits for the
// core to call the hook UpdateMachine. After a minute the condition reports that this core does not; the outcome requeues then.
func (s *scope) updatingCondition() (metav1.Condition, outcome.Outcome) {
	if !machines.Updating(s.Object) {
		return conditions.False(clusterv1.MachineUpdatingCondition, clusterv1.MachineNotUpdatingReason, ""), outcome.Continue()
	}
	updating := conditions.True(clusterv1.MachineUpdatingCondition, clusterv1.MachineInPlaceUpdatingReason,
		"In-place update in progress; the updater ends it by removing the annotation "+clusterv1.UpdateInProgressAnnotation)
	if !updateHookPending(s.Object) {
		return updating, outcome.Continue()
	}
	rest := inPlaceUpdateGrace
	if before := meta.FindStatusCondition(s.Object.Status.Conditions, updating.Type); before != nil && before.Status == metav1.ConditionTrue {
		rest -= s.Now.Sub(before.LastTransitionTime.Time)
	}
	if rest > 0 {
		return updating, outcome.ContinueAfter(rest)
	}
	return conditions.True(clusterv1.MachineUpdatingCondition, clusterv1.MachineInPlaceUpdateFailedReason,
		"This core performs no in-place updates, and the hook UpdateMachine is pending: turn off the feature gate InPlaceUpdates "+
			"of the Machine's owner, then remove the annotations "+clusterv1.UpdateInProgressAnnotation+" and "+
			runtimev1.PendingHooksAnnotation+" or delete the Machine to replace it"), outcome.Continue()
}

// updateHookPending reports whether the owner waits for the core to call the hook UpdateMachine.
func updateHookPending(machine *clusterv1.Machine) bool {
	return slices.Contains(strings.Split(machine.Annotations[runtimev1.PendingHooksAnnotation], ","), "UpdateMachine")
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
