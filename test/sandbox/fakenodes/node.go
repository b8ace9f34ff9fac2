package fakenodes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// node is a Node as the kubelet of a machine registers it.
func node(name, providerID string) *corev1.Node {
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(
			"4",
		),
		corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}},
		Spec:       corev1.NodeSpec{ProviderID: providerID, Taints: []corev1.Taint{clusterv1.NodeUninitializedTaint}},
		Status: corev1.NodeStatus{
			Capacity: size, Allocatable: size, Conditions: healthy(time.Now()),
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
}

// healthy are the conditions that a kubelet reports of a node that is well.
func healthy(now time.Time) []corev1.NodeCondition {
	list := []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID"},
	}
	for i := range list {
		list[i].LastHeartbeatTime, list[i].LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
	}
	return list
}

// beat renews the conditions of the Nodes whose machines run.
func (s *standIn) beat(ctx context.Context, running map[string]bool) error {
	if time.Since(s.beaten) < heartbeat {
		return nil
	}
	s.beaten = time.Now()
	nodes := &corev1.NodeList{}
	if err := s.nodes.List(ctx, nodes); err != nil {
		return err
	}
	alive := s.alive(running)
	for i := range nodes.Items {
		before := &nodes.Items[i]
		if !alive[before.Name] {
			continue
		}
		after := before.DeepCopy()
		for j := range after.Status.Conditions {
			after.Status.Conditions[j].LastHeartbeatTime = metav1.Now()
		}
		if err := s.client.Status().Patch(ctx, after, client.StrategicMergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
