package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/machines"
	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
	"millwright.dev/test/refuse"
)

// rogue is another controller: it creates Machines for a set of ours, with the owner reference of that set.
func (w *world) rogue(set *clusterv1.MachineSet, n int) {
	for i := range n {
		spec := *set.Spec.Template.Spec.DeepCopy()
		spec.InfrastructureRef = coretest.Ref(workers.InfraKind, fmt.Sprintf("rogue-%d", i))
		spec.Bootstrap.ConfigRef = coretest.Ref(workers.ConfigKind, spec.InfrastructureRef.Name)
		w.Create(&clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.Namespace, Name: fmt.Sprintf("rogue-%d", i), Labels: set.Spec.Template.Labels,
				Finalizers:      []string{clusterv1.MachineFinalizer},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))},
			},
			Spec: spec,
		})
	}
}

// refuseDeletions refuses the deletion of Machines while it is on.
func refuseDeletions(on *atomic.Bool, inner client.WithWatch) client.WithWatch {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if _, ok := object.(*clusterv1.Machine); ok && on.Load() {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, object.GetName(), errors.New("no deletions today"))
			}
			return c.Delete(ctx, object, options...)
		},
	})
}

// patch merges a patch into an object.
func (w *world) patch(object client.Object, patch string) {
	w.G.Expect(client.IgnoreNotFound(direct.Patch(w.Ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))))).To(Succeed())
}

// stateOf is reason and message of a condition.
func stateOf(list []metav1.Condition, kind string) string {
	if found := meta.FindStatusCondition(list, kind); found != nil {
		return fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message)
	}
	return ""
}

// TestAnOvershootIsProvoked has, in the middle of a rollout, another controller make Machines that cannot be deleted. Creation stops in all
// sets, whether or not that can be recorded, deletions continue when they can, and then so does all of it.
func TestAnOvershootIsProvoked(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"recorded": false, "the record is refused": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			options := overshoot.DefaultOptions()
			// A set whose status lags behind its spec is taken for a scale-down, which gets that long to take the surplus away.
			options.Period = 5 * time.Second
			w.overshoot = &options
			var undeletable atomic.Bool
			policy := &refuse.Patches{}
			w.start(t, func(inner client.WithWatch) client.Client {
				return policy.Wrap(refuseDeletions(&undeletable, inner))
			})
			w.deployment(2)
			w.Eventually(w.running(2))
			old := w.listSets()[0]
			w.machines.setIdle(true)
			w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.InfrastructureRef.Name = "b" })
			w.Eventually(func(g Gomega) { g.Expect(w.Machines()).To(HaveLen(3)) })
			if refused {
				policy.Begin(isDeployment, overshoot.FrozenLabel)
			}
			undeletable.Store(true)
			w.rogue(&old, 3)
			numbers := "Machines counted; replicas 2, surge 1 and --safety-up 2 allow 4; creation resumes at 4"
			w.Eventually(func(g Gomega) {
				d := w.current()
				g.Expect(stateOf(d.Status.Conditions, overshoot.FrozenCondition)).To(And(
					HavePrefix("True Overshoot: No Machine is created: "), ContainSubstring(numbers)))
				for _, set := range w.listSets() {
					g.Expect(stateOf(set.Status.Conditions, overshoot.FrozenCondition)).To(And(
						HavePrefix("True Overshoot: No Machine is created: MachineDeployment d: "), ContainSubstring(numbers)))
				}
				if refused {
					g.Expect(stateOf(d.Status.Conditions, overshoot.FrozenCondition)).To(HaveSuffix(refuse.Because))
					return
				}
				g.Expect(d.Labels).To(HaveKeyWithValue(overshoot.FrozenLabel, overshoot.Overshoot))
				for _, set := range w.listSets() {
					g.Expect(set.Labels).To(HaveKeyWithValue(overshoot.FrozenLabel, overshoot.ByDeployment))
				}
			})

			// While the deployment does not look, a user asks the young set for more.
			w.update(func(d *clusterv1.MachineDeployment) {
				d.Annotations = with(d.Annotations, clusterv1.PausedAnnotation, "")
			})
			sets := w.listSets()
			young := sets[slices.IndexFunc(sets, func(set clusterv1.MachineSet) bool { return set.UID != old.UID })]
			w.patch(&young, `{"spec":{"replicas":3}}`)
			w.Eventually(func(g Gomega) {
				g.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(&young), &young)).To(Succeed())
				g.Expect(stateOf(young.Status.Conditions, clusterv1.MachineSetScalingUpCondition)).To(And(
					HavePrefix("True "+machines.BlockedReason+": Scaling up from 1 to 3 "), ContainSubstring("frozen (Overshoot)")))
			})
			w.G.Expect(w.Machines()).To(HaveLen(6))

			undeletable.Store(false)
			policy.Lift()
			w.machines.setIdle(false)
			w.update(func(d *clusterv1.MachineDeployment) { delete(d.Annotations, clusterv1.PausedAnnotation) })
			for _, machine := range w.Machines() {
				w.patch(&machine, `{"metadata":{"annotations":{"test/nudge":""}}}`)
			}
			w.Eventually(w.running(2))
			d := w.current()
			w.G.Expect(d.Labels).NotTo(HaveKey(overshoot.FrozenLabel))
			w.Eventually(func(g Gomega) {
				g.Expect(stateOf(w.current().Status.Conditions, overshoot.FrozenCondition)).To(Equal("False NotFrozen: "))
				for _, set := range w.allSets() {
					g.Expect(set.Labels).NotTo(HaveKey(overshoot.FrozenLabel))
					g.Expect(stateOf(set.Status.Conditions, overshoot.FrozenCondition)).To(Equal("False NotFrozen: "))
				}
			})
		})
	}
}
