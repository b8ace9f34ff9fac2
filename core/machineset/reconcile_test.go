package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

func TestScalesUpAndDownAndGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(3)
	w.start(t)

	w.Eventually(w.complete(3))
	for _, machine := range w.Machines() {
		w.G.Expect(machine.Finalizers).To(ContainElement(clusterv1.MachineFinalizer))
		w.G.Expect(metav1.IsControlledBy(&machine, w.current())).To(BeTrue())
		w.G.Expect(machine.Spec.InfrastructureRef).To(Equal(coretest.Ref(workers.InfraKind, machine.Name)))
	}
	w.Eventually(func(g Gomega) {
		set := w.current()
		g.Expect(set.Finalizers).To(ContainElement(clusterv1.MachineSetFinalizer))
		g.Expect(set.Status.Replicas).To(HaveValue(BeEquivalentTo(3)))
		g.Expect(set.Status.Selector).To(Equal("pool=a"))
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
	})

	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](1) })
	w.Eventually(func(g Gomega) {
		w.endMachines()
		w.complete(1)(g)
	})

	w.G.Expect(direct.Delete(w.Ctx, w.current())).To(Succeed())
	w.Eventually(func(g Gomega) {
		w.endMachines()
		g.Expect(w.Machines()).To(BeEmpty())
		list := &clusterv1.MachineSetList{}
		g.Expect(direct.List(w.Ctx, list)).To(Succeed())
		for _, set := range list.Items {
			g.Expect(set.Namespace).NotTo(Equal(w.Namespace), "the set is gone")
		}
	})
}
