package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/core/machines"
	"millwright.dev/test/coretest"
)

// TestAPreservedMachine: its Node takes no more pods, it reports until when it stays, and is deleted when that time is over, or manually.
func TestAPreservedMachine(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]map[string]string{
		"until its time":       {machines.PreserveUntilAnnotation: time.Now().Add(2 * time.Second).Format(time.RFC3339)},
		"until a user says so": {machines.PreserveAnnotation: machines.PreserveNever},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, version.V1Beta2)
			f.createObjects()
			f.createMachine()
			f.refresh(f.config)
			core.SetStatus(t, f.config, coretest.BootstrapReady(version.V1Beta2, "data"))
			f.provision()
			node := core.Node(t, f.machine.Name, f.providerID(), true)
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name))
				g.Expect(condition(m, "Preserved")).To(Equal("absent"))
			})
			f.refresh(f.machine)
			preserved := f.machine.DeepCopy()
			machines.Preserve(preserved, &clusterv1.MachineSet{}, time.Now(), time.Now().Add(time.Hour))
			f.Expect(core.Client.Patch(t.Context(), preserved, client.MergeFrom(f.machine))).To(Succeed())
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "Preserved")).To(Equal("True/Preserved"))
				f.refresh(node)
				g.Expect(node.Spec.Unschedulable).To(BeTrue())
				g.Expect(node.Spec.Taints).To(ContainElement(corev1.Taint{Key: machines.PreservedTaint, Effect: corev1.TaintEffectNoSchedule}))
			})

			f.refresh(f.machine)
			before := f.machine.DeepCopy()
			for key, value := range end {
				f.machine.Annotations[key] = value
			}
			f.Expect(core.Client.Patch(t.Context(), f.machine, client.MergeFrom(before))).To(Succeed())
			f.eventuallyRecorded("PreservationEnded")
			f.eventuallyGone(f.machine)
		})
	}
}
