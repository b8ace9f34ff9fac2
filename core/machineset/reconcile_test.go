package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestScalesUpAndDownAndGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(3)
	w.start(t)

	w.eventually(w.complete(3))
	for _, machine := range w.machines() {
		w.g.Expect(machine.Finalizers).To(ContainElement(clusterv1.MachineFinalizer))
		w.g.Expect(metav1.IsControlledBy(&machine, w.current())).To(BeTrue())
		w.g.Expect(machine.Spec.InfrastructureRef).To(Equal(clusterv1.ContractVersionedObjectReference{
			APIGroup: infraGroup, Kind: "StandInMachine", Name: machine.Name,
		}))
	}
	w.eventually(func(g Gomega) {
		set := w.current()
		g.Expect(set.Finalizers).To(ContainElement(clusterv1.MachineSetFinalizer))
		g.Expect(set.Status.Replicas).To(HaveValue(BeEquivalentTo(3)))
		g.Expect(set.Status.Selector).To(Equal("pool=a"))
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
	})

	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](1) })
	w.eventually(func(g Gomega) {
		w.endMachines()
		w.complete(1)(g)
	})

	w.g.Expect(direct.Delete(w.ctx, w.current())).To(Succeed())
	w.eventually(func(g Gomega) {
		w.endMachines()
		g.Expect(w.machines()).To(BeEmpty())
		list := &clusterv1.MachineSetList{}
		g.Expect(direct.List(w.ctx, list)).To(Succeed())
		for _, set := range list.Items {
			g.Expect(set.Namespace).NotTo(Equal(w.namespace), "the set is gone")
		}
	})
}
