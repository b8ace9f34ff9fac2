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
	w.g.Expect(direct.Delete(w.ctx, w.current(), client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.g.Expect(w.current().Finalizers).To(ContainElement(metav1.FinalizerOrphanDependents))
}

// orphanSets does the garbage collector's part, which no envtest has: it takes the references from the sets.
func (w *world) orphanSets() {
	for _, set := range w.allSets() {
		before := set.DeepCopy()
		set.OwnerReferences = nil
		w.g.Expect(direct.Patch(w.ctx, &set, client.MergeFrom(before))).To(Succeed())
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
	g.Expect(direct.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	g.Expect(list.Items).To(BeEmpty())
}

// allStay is satisfied while no set and no Machine is deleted.
func (w *world) allStay(known map[string]bool) func(Gomega) {
	return func(g Gomega) {
		for _, set := range w.allSets() {
			g.Expect(set.DeletionTimestamp).To(BeNil())
		}
		machines := w.listMachines()
		for _, machine := range machines {
			g.Expect(machine.DeletionTimestamp).To(BeNil())
		}
		uids := w.uids()
		for uid := range known {
			g.Expect(uids).To(HaveKey(uid))
		}
	}
}

// TestOrphanedSetsKeepTheirMachines deletes a deployment with --cascade=orphan. Its set goes on by itself, and a new deployment
// of the same selector adopts it without replacing a Machine.
func TestOrphanedSetsKeepTheirMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.eventually(w.settled(2, "a", "1"))
	known := w.uids()
	w.deleteOrphaning()
	w.eventually(func(g Gomega) {
		g.Expect(metav1.GetControllerOf(&w.allSets()[0])).To(BeNil())
		g.Expect(w.current().Finalizers).To(ConsistOf(metav1.FinalizerOrphanDependents))
	})
	w.endOrphaning()
	w.eventually(w.gone)
	w.allStay(known)(w.g)

	set := w.allSets()[0]
	before := set.DeepCopy()
	set.Spec.Replicas = ptr.To[int32](3)
	w.g.Expect(direct.Patch(w.ctx, &set, client.MergeFrom(before))).To(Succeed())
	w.eventually(func(g Gomega) { g.Expect(w.listMachines()).To(HaveLen(3)) })
	known = w.uids()

	w.deployment(3)
	w.eventually(w.running(3))
	w.g.Expect(w.uids()).To(Equal(known))
	w.g.Expect(w.allSets()).To(HaveLen(1))
}

// TestOrphanedSetsAreNotDeletedThroughAnOldCache lets the garbage collector be faster than the watch of the sets.
func TestOrphanedSetsAreNotDeletedThroughAnOldCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.eventually(w.settled(2, "a", "1"))
	w.stop()
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
	w.g.Consistently(w.allStay(known)).WithTimeout(2 * time.Second).Should(Succeed())
	w.stop()
	w.start(t)
	w.eventually(w.gone)
	w.allStay(known)(w.g)
}

// TestOrphanedSetsAreNotAdoptedAgain lets the garbage collector be faster than the watch of the deployment.
func TestOrphanedSetsAreNotAdoptedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.eventually(w.settled(2, "a", "1"))
	w.stop()
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
	w.g.Consistently(func(g Gomega) {
		w.allStay(known)(g)
		g.Expect(w.allSets()).To(HaveLen(1))
		g.Expect(metav1.GetControllerOf(&w.allSets()[0])).To(BeNil())
	}).WithTimeout(2 * time.Second).Should(Succeed())
	w.stop()
	w.start(t)
	w.eventually(func(g Gomega) { g.Expect(w.current().Finalizers).To(ConsistOf(metav1.FinalizerOrphanDependents)) })
	w.allStay(known)(w.g)
}
