package machineset

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Updating says whether a Machine is being updated in place.
func Updating(machine *clusterv1.Machine) bool { return updating(machine) }

// Outdated lists in words why the Machines of a set are not what its deployment wants by now: because of its
// template, or because the set is older than spec.rollout.after and that time has come.
func Outdated(deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet, now time.Time) []string {
	because := OutdatedBecause(&deployment.Spec.Template, &set.Spec.Template)
	after := deployment.Spec.Rollout.After
	if !after.IsZero() && !now.Before(after.Time) && set.CreationTimestamp.Before(&after) {
		because = append(because, "created before spec.rollout.after, "+after.UTC().Format(time.RFC3339))
	}
	return because
}
