package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestToPhase(t *testing.T) {
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "K", Name: "n"}
	provisioned := clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true)}
	both := clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
	endpoint := clusterv1.APIEndpoint{Host: "h", Port: 1}
	tests := []struct {
		name    string
		cluster clusterv1.Cluster
		want    clusterv1.ClusterPhase
	}{
		{"new", clusterv1.Cluster{}, clusterv1.ClusterPhasePending},
		{"kubeconfig alone, not answering", clusterv1.Cluster{Status: clusterv1.ClusterStatus{Initialization: provisioned}}, clusterv1.ClusterPhasePending},
		{"kubeconfig alone, answering", clusterv1.Cluster{Status: clusterv1.ClusterStatus{Initialization: both}}, clusterv1.ClusterPhaseProvisioned},
		{"infrastructure awaited", clusterv1.Cluster{Spec: clusterv1.ClusterSpec{InfrastructureRef: ref}}, clusterv1.ClusterPhaseProvisioning},
		{"control plane awaited", clusterv1.Cluster{Spec: clusterv1.ClusterSpec{ControlPlaneRef: ref}, Status: clusterv1.ClusterStatus{Initialization: provisioned}}, clusterv1.ClusterPhaseProvisioning},
		{"endpoint known", clusterv1.Cluster{Spec: clusterv1.ClusterSpec{InfrastructureRef: ref, ControlPlaneEndpoint: endpoint}, Status: clusterv1.ClusterStatus{Initialization: provisioned}}, clusterv1.ClusterPhaseProvisioned},
		{"deleting", clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}, Status: clusterv1.ClusterStatus{Initialization: both}}, clusterv1.ClusterPhaseDeleting},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(ToPhase(&test.cluster)).To(Equal(test.want))
		})
	}
}

func TestEnumerate(t *testing.T) {
	g := NewWithT(t)
	g.Expect(enumerate("Machine", []string{"a"})).To(Equal("Machine a"))
	g.Expect(enumerate("Machine", []string{"c", "a", "b"})).To(Equal("Machines a, b, c"))
	g.Expect(enumerate("Machine", []string{"e", "d", "c", "b", "a"})).To(Equal("Machines a, b, c and 2 more"))
}
