package machineset

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// policyText is what a policy says that refuses a write.
const policyText = "names are given out by the registrar"

func (w *world) scaleTo(n int32) {
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To(n) })
}

// TestOneReservationServesAllMachinesOfAScaleUp: it costs one write, and none where nothing is created.
func TestOneReservationServesAllMachinesOfAScaleUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(7)
	var patches atomic.Int32
	w.start(t, w.countReservations(&patches))
	w.Eventually(w.settled(7))
	w.G.Expect(patches.Load()).To(BeEquivalentTo(1))
	w.scaleTo(4)
	w.Eventually(func(g Gomega) { w.endMachines(); w.settled(4)(g) })
	w.scaleTo(3)
	w.Eventually(func(g Gomega) { w.endMachines(); w.settled(3)(g) })
	w.G.Expect(patches.Load()).To(BeEquivalentTo(2), "what was reserved is retired once")
	w.G.Expect(w.current().Annotations).NotTo(HaveKey(ReservedNamesAnnotation))
}

// countReservations counts the writes of the annotation.
func (w *world) countReservations(patches *atomic.Int32) func(client.WithWatch) client.Client {
	return func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				before := object.GetAnnotations()[ReservedNamesAnnotation]
				if _, ok := object.(*clusterv1.MachineSet); ok && before != w.current().Annotations[ReservedNamesAnnotation] {
					patches.Add(1)
				}
				return c.Patch(ctx, object, patch, options...)
			},
		})
	}
}

// TestOneReservationServesAllMachinesOfARollout: the set grows by one Machine at a time, up to the number of its deployment.
func TestOneReservationServesAllMachinesOfARollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deployment := w.deployment("1", nil)
	deployment.Spec.Replicas = ptr.To[int32](4)
	w.G.Expect(direct.Update(w.Ctx, deployment)).To(Succeed())
	w.set(1, of(deployment, "s", "1"))
	var patches atomic.Int32
	w.start(t, w.countReservations(&patches))
	for n := range int32(4) {
		w.scaleTo(n + 1)
		w.Eventually(w.settled(int(n) + 1))
	}
	w.G.Expect(patches.Load()).To(BeEquivalentTo(1))
	w.scaleTo(5)
	w.Eventually(w.settled(5))
	w.G.Expect(patches.Load()).To(BeEquivalentTo(2), "more than the deployment has take another")
}

// TestReservedNamesThatAUserEdits: whatever the annotation says, there are as many Machines as wanted.
func TestReservedNamesThatAUserEdits(t *testing.T) {
	for name, edited := range map[string]string{
		"removed": "", "garbage": "please scale", "huge": "bcdfg:0-99999999999999999999", "of another": "bcdfg:0-3",
		"more than needed": "bcdfg:0-1999", "in the middle": "bcdfg:7",
	} {
		for _, restart := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.set(2)
				l := &late{lost: true}
				w.start(t, l.next)
				w.Eventually(w.settled(2))
				if restart {
					w.Stop()
				}
				w.update(func(set *clusterv1.MachineSet) {
					set.Annotations[ReservedNamesAnnotation] = edited
					if edited == "" {
						delete(set.Annotations, ReservedNamesAnnotation)
					}
					set.Spec.Replicas = ptr.To[int32](5)
				})
				if restart {
					w.start(t, l.next)
				}
				w.Eventually(w.settled(5))
				w.Stop()
				w.G.Expect(l.created).To(Equal(5))
			})
		}
	}
}

// TestNameOfADeadMachineDoesNotComeBack: what belonged to it may still be there. Neither a restart nor a user who
// writes the annotation back to what it was makes the process use it again.
func TestNameOfADeadMachineDoesNotComeBack(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(t *testing.T, w *world, reserved string){
		"after a restart": func(t *testing.T, w *world, _ string) {
			w.Stop()
			w.start(t)
		},
		"after the annotation was written back": func(_ *testing.T, w *world, reserved string) {
			w.update(func(set *clusterv1.MachineSet) {
				set.Annotations = cloned(set.Annotations)
				set.Annotations[ReservedNamesAnnotation] = reserved
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.set(3)
			w.start(t)
			w.Eventually(w.settled(3))
			reserved := w.current().Annotations[ReservedNamesAnnotation]
			w.G.Expect(reserved).NotTo(BeEmpty())
			before := livingNames(w)
			w.scaleTo(1)
			w.Eventually(func(g Gomega) { w.endMachines(); w.settled(1)(g) })
			left := livingNames(w)
			between(t, w, reserved)
			w.scaleTo(3)
			w.Eventually(w.settled(3))
			for _, name := range before {
				if name != left[0] {
					w.G.Expect(livingNames(w)).NotTo(ContainElement(name))
				}
			}
		})
	}
}

// TestNameOfAMachineThatWasRemovedByForceDoesNotComeBack: its instance may still run, and would be taken for that of the new Machine by
// a provider that goes by names. No process sees such a Machine being deleted, and the reservation of a rollout has more names than the
// next Machine takes.
func TestNameOfAMachineThatWasRemovedByForceDoesNotComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deployment := w.deployment("1", nil)
	deployment.Spec.Replicas = ptr.To[int32](4)
	w.G.Expect(direct.Update(w.Ctx, deployment)).To(Succeed())
	w.set(2, of(deployment, "s", "1"))
	w.start(t)
	w.Eventually(w.settled(2))
	removed := livingNames(w)[0]
	machine := &clusterv1.Machine{}
	machine.Namespace, machine.Name = w.current().Namespace, removed
	w.G.Expect(direct.Patch(w.Ctx, machine, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	w.G.Expect(client.IgnoreNotFound(direct.Delete(w.Ctx, machine))).To(Succeed())
	w.Eventually(func(g Gomega) { g.Expect(livingNames(w)).To(And(HaveLen(2), Not(ContainElement(removed)))) })
	w.Stop()
	w.start(t)
	w.scaleTo(4)
	w.Eventually(func(g Gomega) { g.Expect(livingNames(w)).To(HaveLen(4)) })
	w.G.Expect(livingNames(w)).NotTo(ContainElement(removed))
}

// TestRefusedReservationIsSeen: without a reservation no Machine is created, and the set reports why.
func TestRefusedReservationIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(3)
	var allowed atomic.Bool
	w.start(t, func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if _, reserves := object.GetAnnotations()[ReservedNamesAnnotation]; reserves && !allowed.Load() {
					return apierrors.NewForbidden(
						clusterv1.GroupVersion.WithResource("machinesets").GroupResource(),
						object.GetName(),
						errors.New(policyText),
					)
				}
				return c.Patch(ctx, object, patch, options...)
			},
		})
	})
	w.Eventually(func(g Gomega) {
		g.Expect(w.condition(g, clusterv1.MachineSetScalingUpCondition).Message).To(ContainSubstring(policyText))
	})
	w.G.Expect(w.Machines()).To(BeEmpty())
	allowed.Store(true)
	w.Eventually(w.settled(3))
}
