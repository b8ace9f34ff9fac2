package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOrphanedMachinesStay deletes a set with --cascade=orphan. The garbage collector, which no envtest has, is played.
func TestOrphanedMachinesStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := w.set(2)
	w.start(t)
	w.Eventually(w.settled(2))
	w.G.Expect(direct.Delete(w.Ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	found := &clusterv1.MachineSet{}
	w.Eventually(func(g Gomega) {
		g.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(set), found)).To(Succeed())
		g.Expect(found.Finalizers).To(ConsistOf(metav1.FinalizerOrphanDependents))
	})
	before := found.DeepCopy()
	found.Finalizers = nil
	w.G.Expect(direct.Patch(w.Ctx, found, client.MergeFrom(before))).To(Succeed())
	machines := w.Machines()
	w.G.Expect(machines).To(HaveLen(2))
	for i := range machines {
		w.G.Expect(machines[i].DeletionTimestamp).To(BeNil())
		w.G.Expect(metav1.GetControllerOf(&machines[i])).To(BeNil())
	}
}
