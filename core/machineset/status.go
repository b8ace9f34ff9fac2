package machineset

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/conditions"
)

// conclude turns what was read and done into the status of the set. failure is the error that ended the
// reconcile, if one did.
func conclude(s *scope, failure error) {
	status := &s.set.Status
	set := func(condition condition) {
		conditions.Set(&status.Conditions, condition, s.set.Generation, s.now)
	}
	set(pausedCondition(s))
	if len(s.paused) > 0 {
		// While it is paused the rest stays as it was found.
		return
	}
	if s.selector != nil {
		status.Selector = s.selector.String()
	}
	if s.machinesRead {
		count(s)
	}
	for _, judge := range judges {
		set(judge(s, failure))
	}
	if s.machinesRead {
		// The numbers are right even if the attempt to change them has failed; conditions tell of failures.
		status.ObservedGeneration = s.set.Generation
	}
}

// count fills in the numbers of Machines.
func count(s *scope) {
	var upToDate, labelled int32
	required := machineLabels(s.set)
	for _, machine := range s.machines {
		if upToDateCondition(s, machine).Status == metav1.ConditionTrue {
			upToDate++
		}
		if contains(machine.Labels, required) {
			labelled++
		}
	}
	status := &s.set.Status
	ready, available := serving(s.machines)
	status.Replicas = ptr.To(int32(len(s.machines)))
	status.ReadyReplicas, status.AvailableReplicas, status.UpToDateReplicas = &ready, &available, &upToDate
	status.Versions = VersionsOf(s.machines)
	if status.Deprecated == nil {
		status.Deprecated = &clusterv1.MachineSetDeprecatedStatus{}
	}
	if status.Deprecated.V1Beta1 == nil {
		status.Deprecated.V1Beta1 = &clusterv1.MachineSetV1Beta1DeprecatedStatus{}
	}
	older := status.Deprecated.V1Beta1
	older.ReadyReplicas, older.AvailableReplicas, older.FullyLabeledReplicas = ready, available, labelled //nolint:staticcheck // clients of v1beta1 read them
}

// serving counts the Machines that are ready, and that are available. One that is being updated in place counts as neither,
// whether it says so itself yet or not.
func serving(machines []*clusterv1.Machine) (ready, available int32) {
	for _, machine := range machines {
		if updating(machine) {
			continue
		}
		if meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineReadyCondition) {
			ready++
		}
		if meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineAvailableCondition) {
			available++
		}
	}
	return ready, available
}

// Counted says whether the numbers in the status of a set, where it tells any, are those of these Machines.
func Counted(set *clusterv1.MachineSet, machines []*clusterv1.Machine) bool {
	ready, available := serving(machines)
	number := int32(len(machines))
	return ptr.Deref(set.Status.Replicas, number) == number && ptr.Deref(set.Status.ReadyReplicas, ready) == ready &&
		ptr.Deref(set.Status.AvailableReplicas, available) == available
}

// contains says whether all of the required labels are there.
func contains(labels, required map[string]string) bool {
	for key, value := range required {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// maxVersions is what the field takes.
const maxVersions = 100

// VersionsOf counts the Machines by the kubelet's version where a Node has told one; others do not count.
func VersionsOf(machines []*clusterv1.Machine) []clusterv1.StatusVersion {
	counts := map[string]int32{}
	for _, machine := range machines {
		if machine.Status.NodeInfo != nil && machine.Status.NodeInfo.KubeletVersion != "" {
			counts[machine.Status.NodeInfo.KubeletVersion]++
		}
	}
	var versions []clusterv1.StatusVersion
	for version, number := range counts {
		versions = append(versions, clusterv1.StatusVersion{Version: version, Replicas: number})
	}
	slices.SortFunc(versions, func(a, b clusterv1.StatusVersion) int { return cmp.Compare(a.Version, b.Version) })
	return versions[:min(len(versions), maxVersions)]
}
