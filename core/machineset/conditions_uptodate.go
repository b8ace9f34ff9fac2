package machineset

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/admission/defaults"
	"millwright.dev/core/machines"
)

// upToDateCondition reports whether a Machine is what its owner wants by now. It follows from the templates: of
// a set under a deployment, all Machines are outdated from the moment at which the deployment's template rolls,
// without any of them having to be written first. What the templates do not show, that a Machine is being updated in
// place, is in the Machine's own condition.
func upToDateCondition(s *scope, machine *clusterv1.Machine) condition {
	const kind = clusterv1.MachineUpToDateCondition
	own := meta.FindStatusCondition(machine.Status.Conditions, kind)
	want := defaults.Version(s.Object.Spec.Template.Spec.Version)
	switch {
	case len(s.outdated) > 0:
		return conditions.False(kind, clusterv1.MachineNotUpToDateReason, strings.Join(s.outdated, ", "))
	case !metadataOnly(machine) && defaults.Version(machine.Spec.Version) != want:
		return conditions.False(kind, clusterv1.MachineNotUpToDateReason, machines.Mismatch("version", machine.Spec.Version, want))
	case own != nil && own.Status == metav1.ConditionFalse && own.Reason == clusterv1.MachineUpToDateUpdatingReason,
		// For a standalone set another controller writes this condition: keep it.
		own != nil && s.deployment == nil:
		return *own
	case machines.Updating(machine):
		return conditions.False(kind, clusterv1.MachineUpToDateUpdatingReason, "In-place update in progress")
	}
	return conditions.True(kind, clusterv1.MachineUpToDateReason, "")
}
