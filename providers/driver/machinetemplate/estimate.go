package machinetemplate

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// memoryOverhead is the share of a machine's memory that hypervisor, firmware and kernel take, in thousandths. It is Karpenter's
	// default (VM_MEMORY_OVERHEAD_PERCENT).
	memoryOverhead = 75
	// evictionThreshold is the memory that the kubelet keeps free by default.
	evictionThreshold = 100 << 20
	// diskOverhead is the share of the system disk that Pods cannot use, in thousandths: the kubelet keeps a tenth free by default, the
	// rest is for boot partitions and the file system.
	diskOverhead = 150
)

// estimate returns the least that Pods can use of a machine. The cluster autoscaler reads it as allocatable: if it were too high, the
// autoscaler would add Nodes on which the Pods do not fit. From the first Node on, the core reports the real numbers.
func estimate(machine corev1.ResourceList) corev1.ResourceList {
	usable := maps.Clone(machine)
	if q, ok := machine[corev1.ResourceMemory]; ok {
		usable[corev1.ResourceMemory] = inMiB(max(less(q.Value(), memoryOverhead)-evictionThreshold, 0))
	}
	if q, ok := machine[corev1.ResourceEphemeralStorage]; ok {
		usable[corev1.ResourceEphemeralStorage] = inMiB(less(q.Value(), diskOverhead))
	}
	return usable
}

func less(bytes, thousandths int64) int64 { return bytes - bytes/1000*thousandths }

func inMiB(bytes int64) resource.Quantity {
	return *resource.NewQuantity(bytes>>20<<20, resource.BinarySI)
}
