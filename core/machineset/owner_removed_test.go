package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/test/coretest"
)

// A policy removes the owner of new Machines, so the set creates nothing for them. When the policy is gone, the set adopts them and creates
// what they lack: no other creator will do so.
func TestComplete_CAPI14217_OwnerRemovedAtCreation_GetsItsChildren(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	w.fill(set, 2)
	end := coretest.Rewrite(t, direct, w.probe(set), onBoth, func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
	w.Create(set)
	w.start(t)
	w.Eventually(func(g Gomega) {
		g.Expect(w.condition(g, clusterv1.MachineSetScalingUpCondition).Message).To(ContainSubstring("the owner reference is missing"))
	})
	w.Stop()
	end()
	w.start(t)
	w.Eventually(w.complete(2))
	for _, machine := range w.living() {
		w.G.Expect(metav1.IsControlledBy(&machine, w.current())).To(BeTrue())
		w.G.Expect(machine.Annotations).NotTo(HaveKey(AdoptedAnnotation))
	}
}

// A user keeps a Machine that was released: its label matches the selector again, and it stays theirs.
func TestClaim_MachineThatAUserKeeps_IsNotAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1)
	w.start(t)
	w.Eventually(w.complete(1))
	kept := w.living()[0]
	relabel := func(labels map[string]string) {
		w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(&kept), &kept)).To(Succeed())
		before := kept.DeepCopy()
		kept.Labels = labels
		w.G.Expect(direct.Patch(w.Ctx, &kept, client.MergeFrom(before))).To(Succeed())
	}
	relabel(map[string]string{machines.CreatorLabel: machines.NoCreator})
	w.Eventually(func(g Gomega) { g.Expect(livingNames(w)).To(HaveLen(2)) })
	relabel(map[string]string{machines.CreatorLabel: machines.NoCreator, "pool": "a"})
	w.quiet()
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(&kept), &kept)).To(Succeed())
	w.G.Expect(metav1.GetControllerOf(&kept)).To(BeNil())
	w.G.Expect(kept.DeletionTimestamp).To(BeNil())
}
