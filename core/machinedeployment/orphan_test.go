package machinedeployment

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// deleteOrphaning does what `kubectl delete --cascade=orphan` does.
func (w *world) deleteOrphaning() {
	w.G.Expect(direct.Delete(w.Ctx, w.current(), client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.G.Expect(w.current().Finalizers).To(ContainElement(metav1.FinalizerOrphanDependents))
}

// orphanSets does the garbage collector's part, which no envtest has: it takes the references from the sets.
func (w *world) orphanSets() {
	for _, set := range w.allSets() {
		before := set.DeepCopy()
		set.OwnerReferences = nil
		w.G.Expect(direct.Patch(w.Ctx, &set, client.MergeFrom(before))).To(Succeed())
	}
}

// endOrphaning lets the garbage collector be done.
func (w *world) endOrphaning() {
	w.update(func(d *clusterv1.MachineDeployment) {
		controllerutil.RemoveFinalizer(d, metav1.FinalizerOrphanDependents)
	})
}

func (w *world) gone(g Gomega) {
	list := &clusterv1.MachineDeploymentList{}
	g.Expect(direct.List(w.Ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
	g.Expect(list.Items).To(BeEmpty())
}

// allStay is satisfied while no set and no Machine is deleted.
func (w *world) allStay(known map[string]bool) func(Gomega) {
	return func(g Gomega) {
		for _, set := range w.allSets() {
			g.Expect(set.DeletionTimestamp).To(BeNil())
		}
		machines := w.Machines()
		for _, machine := range machines {
			g.Expect(machine.DeletionTimestamp).To(BeNil())
		}
		uids := w.uids()
		for uid := range known {
			g.Expect(uids).To(HaveKey(uid))
		}
	}
}

// TestOrphanedSetsKeepTheirMachines deletes a deployment with --cascade=orphan. Its set continues by itself, and a new deployment
// of the same selector adopts it without replacing a Machine.
func TestOrphanedSetsKeepTheirMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	known := w.uids()
	w.deleteOrphaning()
	w.Eventually(func(g Gomega) {
		g.Expect(metav1.GetControllerOf(&w.allSets()[0])).To(BeNil())
		g.Expect(w.current().Finalizers).To(ConsistOf(metav1.FinalizerOrphanDependents))
	})
	w.endOrphaning()
	w.Eventually(w.gone)
	w.allStay(known)(w.G)

	set := w.allSets()[0]
	before := set.DeepCopy()
	set.Spec.Replicas = ptr.To[int32](3)
	w.G.Expect(direct.Patch(w.Ctx, &set, client.MergeFrom(before))).To(Succeed())
	w.Eventually(func(g Gomega) { g.Expect(w.Machines()).To(HaveLen(3)) })
	known = w.uids()

	w.deployment(3)
	w.Eventually(w.running(3))
	w.G.Expect(w.uids()).To(Equal(known))
	w.G.Expect(w.allSets()).To(HaveLen(1))
}

// TestOrphanedSetsAreNotDeletedThroughAnOldCache lets the garbage collector be faster than the watch of the sets.
func TestOrphanedSetsAreNotDeletedThroughAnOldCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	w.Stop()
	old, known := w.allSets(), w.uids()
	w.deleteOrphaning()
	w.orphanSets()
	w.endOrphaning()
	w.start(t, func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if sets, ok := list.(*clusterv1.MachineSetList); ok {
					sets.Items = old
					return nil
				}
				return c.List(ctx, list, options...)
			},
		})
	})
	w.G.Consistently(w.allStay(known)).WithTimeout(2 * time.Second).Should(Succeed())
	w.Stop()
	w.start(t)
	w.Eventually(w.gone)
	w.allStay(known)(w.G)
}

// TestOrphanedSetsAreNotAdoptedAgain lets the garbage collector be faster than the watch of the deployment.
func TestOrphanedSetsAreNotAdoptedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	w.Stop()
	old, known := w.current(), w.uids()
	w.deleteOrphaning()
	w.orphanSets()
	w.start(t, func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if deployment, ok := object.(*clusterv1.MachineDeployment); ok {
					old.DeepCopyInto(deployment)
					return nil
				}
				return c.Get(ctx, key, object, options...)
			},
		})
	})
	w.G.Consistently(func(g Gomega) {
		w.allStay(known)(g)
		g.Expect(w.allSets()).To(HaveLen(1))
		g.Expect(metav1.GetControllerOf(&w.allSets()[0])).To(BeNil())
	}).WithTimeout(2 * time.Second).Should(Succeed())
	w.Stop()
	w.start(t)
	w.Eventually(func(g Gomega) { g.Expect(w.current().Finalizers).To(ConsistOf(metav1.FinalizerOrphanDependents)) })
	w.allStay(known)(w.G)
}
