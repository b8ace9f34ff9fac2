package machineset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/core/machines"
	"millwright.dev/core/naming"
)

// setStatus derives the status of the set from what was read and done. failure is the error that ended the
// reconcile, if one did.
func (s *scope) setStatus(failure error) {
	status := &s.Object.Status
	set := func(condition condition) {
		conditions.Set(&status.Conditions, condition, s.Object.Generation, s.Now)
	}
	set(paused.Condition(s.paused))
	if len(s.paused) > 0 {
		// While the set is paused the rest of the status is left alone.
		return
	}
	if s.selector != nil && !s.keepSelector {
		status.Selector = s.selector.String()
	}
	if s.machinesRead {
		count(s)
	}
	for _, derive := range derivations {
		set(derive(s, failure))
	}
	if s.machinesRead {
		// The numbers are right even if the attempt to change them has failed; the conditions report failures.
		status.ObservedGeneration = s.Object.Generation
	}
}

// count sets the numbers of Machines.
func count(s *scope) {
	var upToDate, labelled int32
	required := naming.MachineLabels(s.Object)
	for _, machine := range s.machines {
		if upToDateCondition(s, machine).Status == metav1.ConditionTrue {
			upToDate++
		}
		if contains(machine.Labels, required) {
			labelled++
		}
	}
	status := &s.Object.Status
	ready, available := machines.Serving(s.machines)
	status.Replicas = ptr.To(int32(len(s.machines)))
	status.ReadyReplicas, status.AvailableReplicas, status.UpToDateReplicas = &ready, &available, &upToDate
	status.Versions = machines.VersionsOf(s.machines)
	if status.Deprecated == nil {
		status.Deprecated = &clusterv1.MachineSetDeprecatedStatus{}
	}
	if status.Deprecated.V1Beta1 == nil {
		status.Deprecated.V1Beta1 = &clusterv1.MachineSetV1Beta1DeprecatedStatus{}
	}
	older := status.Deprecated.V1Beta1
	//nolint:staticcheck // clients of v1beta1 read them
	older.ReadyReplicas, older.AvailableReplicas, older.FullyLabeledReplicas = ready, available, labelled
}

// contains reports whether all of the required labels are there.
func contains(labels, required map[string]string) bool {
	for key, value := range required {
		if labels[key] != value {
			return false
		}
	}
	return true
}
