package freeze

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAStandbyThatStartedWithTheLeader after a restore takes over from it: the lease was taken since, and says nothing of the time before.
// The standby replaces nothing before it has looked for signs itself, and finds those that the first one had no time to report.
func TestAStandbyThatStartedWithTheLeader(t *testing.T) {
	g := NewWithT(t)
	begin := newWorld(0).clock.Now()
	lease := leaseOf(func(l *coordinationv1.Lease) {
		l.ResourceVersion = ""
		l.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(begin.Add(-24 * time.Hour)))
		l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(begin.Add(-2 * time.Hour)))
	})
	key := client.ObjectKeyFromObject(lease)
	server := apiServer(func(context.Context) error { return nil }, lease)
	starts := func() *world {
		w := newWorld(0)
		w.Freezer.start = start{at: begin}
		return w
	}
	leader, standby := starts(), starts()
	g.Expect(leader.ReadLease(t.Context(), server, key)).To(Succeed())
	g.Expect(server.Get(t.Context(), key, lease)).To(Succeed())
	lease.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(begin.Add(time.Second)))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(begin.Add(time.Second)))
	g.Expect(server.Update(t.Context(), lease)).To(Succeed())
	g.Expect(standby.ReadLease(t.Context(), server, key)).To(Succeed())

	standby.clock.Step(DefaultGrace + time.Minute)
	g.Expect(standby.Frozen(cluster).Reason).To(Equal(CoreWasAwayReason), "the grace is over, and was not read")
	e := &Examiner{
		Freezer: standby.Freezer, Client: indexed(), APIReader: indexed(),
		Nodes: func(client.ObjectKey) ([]*corev1.Node, bool) {
			return []*corev1.Node{node("n", "lost", begin.Add(-time.Hour))}, true
		},
	}
	_, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: cluster})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(standby.Frozen(cluster).Reason).To(Equal(RestoreSuspectedReason))
}

// TestAStandbyOfALongTime takes over from a core that was at work all the while: there is nothing to wait for.
func TestAStandbyOfALongTime(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.clock.Step(24 * time.Hour)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	_, look := w.restorable(cluster)
	g.Expect(look).To(Equal(notNeeded))
}

// TestAClusterThatIsMovedHere: clusterctl creates the Cluster after the core has started, and its Machines one after the other. That Nodes
// are there already whose Machines are not is no sign of a restore, also if no core was at work here before.
func TestAClusterThatIsMovedHere(t *testing.T) {
	for _, gap := range []time.Duration{2 * time.Hour, -1} {
		g := NewWithT(t)
		w := newWorld(gap)
		moved := named(cluster)
		moved.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(time.Minute))
		w.RecallAtOnce(apiServer(func(context.Context) error { return nil }, moved))
		e := &Examiner{
			Freezer: w.Freezer, Client: indexed(), APIReader: indexed(),
			Nodes: func(client.ObjectKey) ([]*corev1.Node, bool) {
				return []*corev1.Node{node("n", "not-yet-moved", w.clock.Now().Add(-time.Minute))}, true
			},
		}
		w.clock.Step(2 * time.Minute)
		_, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: cluster})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Frozen(cluster)).To(Equal(State{}))
	}
}
