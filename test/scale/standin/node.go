package standin

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// images is how many images a Node lists; a kubelet lists up to 50.
const images = 25

// healthyConditions are what a kubelet reports of a healthy node, by type.
var healthyConditions = []struct {
	kind   corev1.NodeConditionType
	status corev1.ConditionStatus
	reason string
}{
	{corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"},
	{corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"},
	{corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"},
	{corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"},
}

// node is a Node as a kubelet registers it, of about the size of a real one.
func node(infra *metav1.PartialObjectMetadata, address string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: infra.Name,
			Labels: map[string]string{
				corev1.LabelHostname:   infra.Name,
				corev1.LabelArchStable: "amd64",
				corev1.LabelOSStable:   "linux",
			},
		},
		Spec: corev1.NodeSpec{
			ProviderID: providerID(infra),
			Taints:     []corev1.Taint{clusterv1.NodeUninitializedTaint},
		},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: infra.Name},
				{Type: corev1.NodeInternalIP, Address: address},
			},
			Capacity:    capacity(),
			Allocatable: capacity(),
			Conditions:  conditions(time.Now()),
			NodeInfo: corev1.NodeSystemInfo{
				MachineID:               strings.ReplaceAll(string(infra.UID), "-", ""),
				SystemUUID:              string(infra.UID),
				BootID:                  string(infra.UID),
				KernelVersion:           "6.12.0",
				OSImage:                 "Linux",
				ContainerRuntimeVersion: "containerd://2.2.0",
				KubeletVersion:          "v1.36.3",
				OperatingSystem:         "linux",
				Architecture:            "amd64",
			},
			Images: imageList(),
		},
	}
}

func conditions(now time.Time) []corev1.NodeCondition {
	list := make([]corev1.NodeCondition, 0, len(healthyConditions))
	for _, c := range healthyConditions {
		list = append(list, corev1.NodeCondition{
			Type:               c.kind,
			Status:             c.status,
			Reason:             c.reason,
			Message:            "kubelet reports " + string(c.kind) + "=" + string(c.status),
			LastHeartbeatTime:  metav1.NewTime(now),
			LastTransitionTime: metav1.NewTime(now),
		})
	}
	return list
}

func capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("4"),
		corev1.ResourceMemory:           resource.MustParse("16Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
}

func imageList() []corev1.ContainerImage {
	list := make([]corev1.ContainerImage, 0, images)
	for i := range images {
		name := fmt.Sprintf("registry.example.com/team/workload-%02d", i)
		list = append(list, corev1.ContainerImage{
			Names:     []string{name + "@sha256:" + strings.Repeat(fmt.Sprintf("%02d", i), 32), name + ":v1.0.0"},
			SizeBytes: 50 << 20,
		})
	}
	return list
}

// internalIP is the address of the n-th machine within 10.0.0.0/8.
func internalIP(n int64) string {
	return fmt.Sprintf("10.%d.%d.%d", n>>16&0xff, n>>8&0xff, n&0xff)
}
