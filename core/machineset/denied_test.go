package machineset

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/test/refuse"
)

// A policy protects one Machine. The others that a scale-down has chosen are deleted; the protected one is counted, and no other is deleted
// in its place.
func TestScaleDown_DeletionOfOneMachineDenied_OthersAreDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var protected atomic.Value
	protected.Store("")
	w.set(4)
	w.start(t, func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				if object.GetName() == protected.Load() {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, object.GetName(), errors.New(refuse.Because))
				}
				return c.Delete(ctx, object, options...)
			},
		})
	})
	w.Eventually(w.complete(4))
	chosen := w.living()[:2]
	for i := range chosen {
		w.mark(chosen[i].Name)
	}
	protected.Store(chosen[0].Name)
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](2) })
	w.Eventually(w.reports(clusterv1.MachineSetScalingDownCondition, clusterv1.MachineSetScalingDownReason, refuse.Because))
	w.Eventually(func(g Gomega) {
		w.endMachines()
		g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(3)))
	})
	w.G.Expect(livingNames(w)).To(And(HaveLen(3), ContainElement(chosen[0].Name), Not(ContainElement(chosen[1].Name))))
	protected.Store("")
	w.Eventually(func(g Gomega) {
		w.endMachines()
		w.complete(2)(g)
	})
}

// A policy denies to release a Machine whose labels no longer match. It counts as a replica, and the set is scaled down all the same.
func TestClaim_ReleaseDenied_SetIsScaledDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	w.set(3)
	w.start(t, policy.Wrap)
	w.Eventually(w.complete(3))
	policy.Begin(func(o client.Object) bool { _, ok := o.(*clusterv1.Machine); return ok }, "ownerReferences")
	strayed := w.living()[0]
	before := strayed.DeepCopy()
	strayed.Labels["pool"] = "b"
	w.G.Expect(direct.Patch(w.Ctx, &strayed, client.MergeFrom(before))).To(Succeed())
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, "ScalingUpBlocked", refuse.Because))
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](1) })
	w.Eventually(func(g Gomega) {
		w.endMachines()
		w.complete(1)(g)
	})
}
