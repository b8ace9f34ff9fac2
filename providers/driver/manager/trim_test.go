package manager

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestTrimMachineKeepsWhatALaunchDependsOn(t *testing.T) {
	g := NewWithT(t)
	data, yes := "data", true
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "n", UID: "u", ResourceVersion: "1",
			Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Cluster", UID: "c"}, {Kind: "MachineSet", UID: "s", Controller: &yes}}},
		Spec: clusterv1.MachineSpec{ClusterName: "c", FailureDomain: "a", ProviderID: "p", Version: "v1",
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: &data},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: "AWSMachine", Name: "m"}},
		Status: clusterv1.MachineStatus{Phase: "Running", Addresses: clusterv1.MachineAddresses{{Type: "Hostname", Address: "h"}},
			NodeRef: clusterv1.MachineNodeReference{Name: "h"}},
	}
	trimmed, err := trimMachine(m)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(trimmed).To(Equal(&clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "n", UID: "u", ResourceVersion: "1",
			OwnerReferences: []metav1.OwnerReference{{Kind: "MachineSet", UID: "s", Controller: &yes}}},
		Spec: clusterv1.MachineSpec{ClusterName: "c", FailureDomain: "a", ProviderID: "p", Bootstrap: clusterv1.Bootstrap{DataSecretName: &data},
			InfrastructureRef: m.Spec.InfrastructureRef},
		Status: clusterv1.MachineStatus{Addresses: m.Status.Addresses},
	}))
}

// TestTrimMachine_BeingDeleted_KeepsHowFarItIs: an instance waits for the drain. The message changes with each Pod.
func TestTrimMachine_BeingDeleted_KeepsHowFarItIs(t *testing.T) {
	g := NewWithT(t)
	now := metav1.Now()
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", DeletionTimestamp: &now}, Status: clusterv1.MachineStatus{
		Conditions: []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NotReady"},
			{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: "DrainingNode", Message: "3 Pods left"},
		},
	}}
	trimmed, err := trimMachine(m)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(trimmed.(*clusterv1.Machine).Status.Conditions).To(Equal(
		[]metav1.Condition{{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: "DrainingNode"}}))
}

func TestTrimClusterKeepsWhetherMachinesMayBeLaunched(t *testing.T) {
	g := NewWithT(t)
	yes := true
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", Annotations: map[string]string{"a": "b"}},
		Spec:       clusterv1.ClusterSpec{Paused: &yes, ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "h"}},
	}
	c.Status.Initialization.InfrastructureProvisioned = &yes
	trimmed, err := trimCluster(c)
	g.Expect(err).NotTo(HaveOccurred())
	want := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n"}, Spec: clusterv1.ClusterSpec{Paused: &yes}}
	want.Status.Initialization.InfrastructureProvisioned = &yes
	g.Expect(trimmed).To(Equal(want))
}

func TestTrimNamespaceKeepsItsLabels(t *testing.T) {
	g := NewWithT(t)
	trimmed, err := trimNamespace(&corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"tenant": "a"}, Annotations: map[string]string{"long": "text"}},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(trimmed).To(Equal(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"tenant": "a"}}}))
}

func TestTombstonesPass(t *testing.T) {
	tombstone := cache.DeletedFinalStateUnknown{Key: "n/m"}
	for _, transform := range []func(any) (any, error){trimMachine, trimCluster, trimNamespace} {
		got, err := transform(tombstone)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(got).To(Equal(tombstone))
	}
}
