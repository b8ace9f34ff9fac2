package machines

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// RolloutAfterAnnotation records, on a MachineSet, for which spec.rollout.after its MachineDeployment created it, or
// noRolloutAfter. Whether a set is older than that time follows from this record and not from its creation time: the
// clock of the API server, which stamps that, and the clock of this process, which decides when the time has come, differ.
const RolloutAfterAnnotation = "machinedeployment.millwright.dev/rollout-after"

// noRolloutAfter is the value of RolloutAfterAnnotation of a set that was created for no spec.rollout.after.
const noRolloutAfter = "none"

// clockTolerance is by how much the clocks of API server, users and this process may differ. Only a set that was
// created longer than that after spec.rollout.after is known to be younger without a record.
const clockTolerance = 2 * time.Hour

// Outdated lists why the Machines of a set are not what its deployment wants by now: because of its
// template, or because the set is older than spec.rollout.after and that time has come.
func Outdated(deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet, now time.Time) []string {
	because := OutdatedBecause(&deployment.Spec.Template, &set.Spec.Template)
	after := deployment.Spec.Rollout.After
	if !after.IsZero() && !now.Before(after.Time) && !youngerThan(set, after.Time) {
		because = append(because, "created before spec.rollout.after, "+after.UTC().Format(time.RFC3339))
	}
	return because
}

// RolloutAfterRecord is the value of RolloutAfterAnnotation for a set that is created now.
func RolloutAfterRecord(deployment *clusterv1.MachineDeployment, now time.Time) string {
	if after := deployment.Spec.Rollout.After; !after.IsZero() && !now.Before(after.Time) {
		return after.UTC().Format(time.RFC3339)
	}
	return noRolloutAfter
}

// CreatedFor reports whether a set was created for exactly this spec.rollout.after, which has then come.
func CreatedFor(set *clusterv1.MachineSet, after time.Time) bool {
	recorded, known := recordedRolloutAfter(set)
	return known && recorded.Equal(after)
}

// youngerThan reports whether a set was created for this spec.rollout.after or a later one. A set without a record was
// not created by this project; Cluster API's rule, which compares the creation time, continues for it, so that
// taking over from Cluster API replaces nothing.
func youngerThan(set *clusterv1.MachineSet, after time.Time) bool {
	recorded, known := recordedRolloutAfter(set)
	if !known {
		return !set.CreationTimestamp.Time.Before(after)
	}
	return !recorded.Before(after) || set.CreationTimestamp.Time.After(after.Add(clockTolerance))
}

// recordedRolloutAfter reads RolloutAfterAnnotation; known is false for a value that this project does not write.
func recordedRolloutAfter(set *clusterv1.MachineSet) (after time.Time, known bool) {
	value := set.Annotations[RolloutAfterAnnotation]
	if value == noRolloutAfter {
		return time.Time{}, true
	}
	after, err := time.Parse(time.RFC3339, value)
	return after, err == nil
}
