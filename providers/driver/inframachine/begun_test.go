package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/conditions"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// A process that has lost its lease writes last what it knew of the instance. That wakes nobody, and the one that took over has reported
// all that it will see.
func TestWhatTheOldLeaderWritesLastIsCorrected(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		w.start(w.active)
		w.await("the machine is ready", w.settled)
		w.change(func(obj *examplev1.ExampleMachine) {
			old := conditions.False(driverv1.ReadyCondition, driverv1.InstancePendingReason, "The cloud is starting the instance")
			old.LastTransitionTime = metav1.Now()
			conditions.Set(&obj.Status.Conditions, old, obj.Generation, time.Now())
		})
		g.Expect(w.reason()).To(Equal(driverv1.InstancePendingReason))
		time.Sleep(overlap)
		g.Expect(w.reason()).To(Equal(driverv1.InstanceRunningReason))
		w.remove()
	})
}

// Each object is looked at again once: what a process has reconciled for longer costs nothing more.
func TestLookAgain(t *testing.T) {
	g := NewWithT(t)
	r := &Reconciler[*testMachine]{}
	began := time.Unix(1e6, 0)
	for after, want := range map[time.Duration]time.Duration{0: overlap, overlap / 2: overlap / 2, overlap: 0, time.Hour: 0} {
		r.begun.since(began)
		out := r.lookAgain(began.Add(after))
		g.Expect(out.Finished()).To(BeTrue())
		g.Expect(out.After()).To(Equal(want), after.String())
	}
}
