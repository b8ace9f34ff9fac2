package machinedeployment

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/test/refuse"
)

// TestMarkedMachineThatServesIsNotGivenUpForABrokenOne rolls out over two Machines, of which one is broken and the other
// marked to go: the broken one makes room, once its deletion is allowed, and the marked one serves until another does.
func TestMarkedMachineThatServesIsNotGivenUpForABrokenOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2, limits(ptr.To(intstr.FromInt32(1)), ptr.To(intstr.FromInt32(0))), func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
	})
	var refused atomic.Bool
	refused.Store(true)
	w.start(t, func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				if _, ok := object.(*clusterv1.Machine); ok && refused.Load() {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, object.GetName(), errors.New(refuse.Because))
				}
				return c.Delete(ctx, object, options...)
			},
		})
	})
	w.Eventually(w.settled(2, "a", "1"))
	w.machines.hold(true)
	machines := w.machinesOf("a")
	marked, broken := machines[0], machines[1]
	before := marked.DeepCopy()
	marked.Annotations = with(marked.Annotations, clusterv1.DeleteMachineAnnotation, "yes")
	w.G.Expect(direct.Patch(w.Ctx, marked, client.MergeFrom(before))).To(Succeed())
	w.breakDown(broken)
	w.update(toTemplateB)

	w.Eventually(w.reports(clusterv1.MachineDeploymentRollingOutCondition, clusterv1.MachineDeploymentRollingOutReason, refuse.Because))
	w.G.Expect(w.setOf(marked).Spec.Replicas).To(HaveValue(BeEquivalentTo(2)), "as long as the broken one stays, the set would give up the marked one")
	refused.Store(false)
	w.Eventually(func(g Gomega) {
		g.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(broken), broken)).To(Succeed())
		g.Expect(broken.DeletionTimestamp).NotTo(BeNil())
		g.Expect(w.setOf(marked).Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(w.setOf(marked).Status.ObservedGeneration).To(Equal(w.setOf(marked).Generation))
	})
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(marked), marked)).To(Succeed())
	w.G.Expect(marked.DeletionTimestamp).To(BeNil(), "it is needed as long as only one other serves")
	w.machines.hold(false)
	w.Eventually(w.settled(2, "b", "2"))
}

// breakDown has a Machine not serve any more.
func (w *world) breakDown(machine *clusterv1.Machine) {
	before := machine.DeepCopy()
	conditions.Set(
		&machine.Status.Conditions,
		conditions.False(clusterv1.MachineAvailableCondition, "Broken", "it is"),
		machine.Generation,
		time.Now(),
	)
	w.G.Expect(direct.Status().Patch(w.Ctx, machine, client.MergeFrom(before))).To(Succeed())
	w.Eventually(func(g Gomega) { g.Expect(w.current().Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(1))) })
}

// setOf is the set of a Machine.
func (w *world) setOf(machine *clusterv1.Machine) *clusterv1.MachineSet {
	for _, set := range w.allSets() {
		if set.Labels[clusterv1.MachineDeploymentUniqueLabel] == machine.Labels[clusterv1.MachineDeploymentUniqueLabel] {
			return &set
		}
	}
	return nil
}
