package machines

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// maxVersions is what the field takes.
const maxVersions = 100

// VersionsOf counts the Machines by the kubelet's version where a Node has reported one; others do not count.
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

// Serving counts the Machines that are ready, and that are available. One that is being deleted, or updated in place, counts as neither,
// whether its conditions show it yet or not.
func Serving(machines []*clusterv1.Machine) (ready, available int32) {
	for _, machine := range machines {
		if Updating(machine) || !machine.DeletionTimestamp.IsZero() {
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

// Counted reports whether the numbers in the status of a set, where it has any, are those of these Machines.
func Counted(set *clusterv1.MachineSet, machines []*clusterv1.Machine) bool {
	ready, available := Serving(machines)
	number := int32(len(machines))
	return ptr.Deref(set.Status.Replicas, number) == number && ptr.Deref(set.Status.ReadyReplicas, ready) == ready &&
		ptr.Deref(set.Status.AvailableReplicas, available) == available
}
