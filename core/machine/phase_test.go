package machine

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestToPhase(t *testing.T) {
	// A Machine collects these in its life; each stage has those before it.
	data := func(m *clusterv1.Machine) { m.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true) }
	id := func(m *clusterv1.Machine) { m.Spec.ProviderID = "p" }
	provisioned := func(m *clusterv1.Machine) { m.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }
	node := func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }
	deleted := func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }
	tests := []struct {
		name string
		has  []func(*clusterv1.Machine)
		want clusterv1.MachinePhase
	}{
		{"new", nil, clusterv1.MachinePhasePending},
		{"bootstrap data", []func(*clusterv1.Machine){data}, clusterv1.MachinePhaseProvisioning},
		{"provider ID", []func(*clusterv1.Machine){data, id, provisioned}, clusterv1.MachinePhaseProvisioned},
		{"infrastructure without bootstrap data", []func(*clusterv1.Machine){id, provisioned}, clusterv1.MachinePhaseProvisioned},
		{"Node", []func(*clusterv1.Machine){data, id, provisioned, node}, clusterv1.MachinePhaseRunning},
		{"Node of a machine that is not provisioned", []func(*clusterv1.Machine){data, id, node}, clusterv1.MachinePhaseProvisioned},
		{"deleting while running", []func(*clusterv1.Machine){data, id, provisioned, node, deleted}, clusterv1.MachinePhaseDeleting},
		{"deleting while new", []func(*clusterv1.Machine){deleted}, clusterv1.MachinePhaseDeleting},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := &clusterv1.Machine{}
			for _, has := range test.has {
				has(m)
			}
			NewWithT(t).Expect(ToPhase(m)).To(Equal(test.want))
		})
	}
}
