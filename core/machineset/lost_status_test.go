package machineset

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/test/stale"
)

// lostStatus loses the answer to the next patch of a MachineSet's status, once it is armed.
type lostStatus struct {
	armed, lost atomic.Bool
	// meanwhile is called after the patch took effect and before its sender learns that there is no answer.
	meanwhile func(cached client.Reader)
	// reads counts how often the MachineSet was read since then: once for each reconcile.
	reads atomic.Int32
}

func (l *lostStatus) wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(*clusterv1.MachineSet); ok && l.lost.Load() {
				l.reads.Add(1)
			}
			return c.Get(ctx, key, object, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			err := c.SubResource(sub).Patch(ctx, object, patch, options...)
			if _, ok := object.(*clusterv1.MachineSet); !ok || err != nil || !l.armed.CompareAndSwap(true, false) {
				return err
			}
			l.meanwhile(c)
			l.lost.Store(true)
			return io.ErrUnexpectedEOF
		},
	})
}

// TestAStatusWhoseAnswerIsLost: before the cache shows the patch, the Machine is again as it was, so that the next reconcile finds what it
// computes in the cache and writes nothing. The event of the patch, which changes only the own status, triggers another one.
func TestAStatusWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sets := &stale.Watches{Resource: "machinesets"}
	w.wire = sets.Wrap
	w.set(1)
	lost := &lostStatus{}
	w.start(t, lost.wrap)
	t.Cleanup(sets.Flow)
	w.Eventually(w.settled(1))
	w.ready(metav1.ConditionFalse)
	w.Eventually(func(g Gomega) {
		g.Expect(meta.FindStatusCondition(w.current().Status.Conditions, clusterv1.MachineSetMachinesReadyCondition)).
			To(HaveField("Status", metav1.ConditionFalse))
	})
	w.quiet()
	lost.meanwhile = func(cached client.Reader) {
		w.ready(metav1.ConditionFalse)
		w.G.Eventually(func() bool {
			list := &clusterv1.MachineList{}
			w.G.Expect(cached.List(w.Ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
			return meta.IsStatusConditionFalse(list.Items[0].Status.Conditions, clusterv1.MachineReadyCondition)
		}).Should(BeTrue())
	}
	sets.Hold()
	lost.armed.Store(true)
	w.ready(metav1.ConditionTrue)
	w.Eventually(func(g Gomega) { g.Expect(lost.reads.Load()).To(BeNumerically(">", 0)) })
	w.quiet()
	w.G.Expect(w.current().Status.ReadyReplicas).To(HaveValue(BeEquivalentTo(1)), "what the patch had, and the cache has not")
	sets.Flow()
	w.Eventually(func(g Gomega) { g.Expect(w.current().Status.ReadyReplicas).To(HaveValue(BeZero())) })
	w.Eventually(w.settled(1))
}

// ready sets the condition Ready of the only Machine.
func (w *world) ready(status metav1.ConditionStatus) {
	machine := &w.Machines()[0]
	before := machine.DeepCopy()
	meta.SetStatusCondition(&machine.Status.Conditions, metav1.Condition{
		Type: clusterv1.MachineReadyCondition, Status: status, Reason: "Test", Message: string(status),
	})
	w.G.Expect(direct.Status().Patch(w.Ctx, machine, client.MergeFrom(before))).To(Succeed())
}
