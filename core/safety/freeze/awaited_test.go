package freeze

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/core/index"
	"millwright.dev/test/testenv"
)

// named is a Cluster of that name.
func named(key client.ObjectKey) *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// recovering is a Cluster of which the previous core has said, a minute before this one started, that its API server answers again.
func recovering(w *world) *clusterv1.Cluster {
	c := named(cluster)
	c.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.MachineHealthCheckRemediationAllowedCondition, Status: metav1.ConditionFalse, Reason: RecoveringReason,
		LastTransitionTime: metav1.NewTime(w.clock.Now().Add(-time.Minute)),
	}}
	return c
}

// TestAReaderThatHangsBlocksNoCaller: neither queries about this or another Cluster, nor reports that something answers.
// The Cluster is not judged until it was read.
func TestAReaderThatHangsBlocksNoCaller(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.onChange = nil
	hangs, hanging := make(chan struct{}), make(chan struct{}, 10)
	server := apiServer(func(context.Context) error {
		hanging <- struct{}{}
		<-hangs
		return nil
	}, recovering(w), named(other))
	w.Recall(t.Context(), server)
	done := make(chan State)
	go func() {
		w.Frozen(cluster)
		w.Frozen(other)
		w.controlAnswered(t.Context())
		w.counts()
		_, look := w.restorable(cluster)
		g.Expect(look).To(Equal(awaited))
		done <- w.Frozen(cluster)
	}()
	g.Eventually(hanging).Should(Receive())
	var state State
	g.Eventually(done).Should(Receive(&state))
	g.Expect(state.Unread).To(BeTrue())
	g.Expect(state.Reason).To(Equal(CoreWasAwayReason))
	g.Expect(w.NotBefore(cluster)).To(BeTemporally(">", w.clock.Now().Add(24*time.Hour)), "no Machine is judged")
	close(hangs)
	g.Eventually(func() string { return w.Frozen(cluster).Reason }).Should(Equal(RecoveringReason))
	g.Eventually(func() bool { return w.Frozen(other).Active() }).Should(BeFalse())
}

// TestAReadThatFailsIsRepeated, and those who wait are notified of its result. Until then an answer of the target is taken in.
func TestAReadThatFailsIsRepeated(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	notified := make(chan client.ObjectKey, 100)
	w.OnChange(func(key client.ObjectKey) { notified <- key })
	var broken atomic.Bool
	broken.Store(true)
	var asked atomic.Int32
	w.Recall(t.Context(), apiServer(func(context.Context) error {
		asked.Add(1)
		if broken.Load() {
			return errors.New("broken")
		}
		return nil
	}, recovering(w)))
	g.Expect(w.Frozen(cluster).Unread).To(BeTrue())
	g.Eventually(asked.Load).Should(BeNumerically(">=", 3))
	g.Expect(w.Frozen(cluster).Unread).To(BeTrue())
	g.Expect(notified).To(BeEmpty())
	broken.Store(false)
	g.Eventually(notified).Should(Receive(Equal(cluster)))
	g.Expect(w.Frozen(cluster).Reason).To(Equal(RecoveringReason), "the freeze of the previous core continues")
	reads := asked.Load()
	w.Frozen(cluster)
	g.Consistently(asked.Load).WithTimeout(100*time.Millisecond).Should(Equal(reads), "it is read once")
}

// TestWhatIsReadLateCountsFromThen: the target has answered before it was known that it had not.
func TestWhatIsReadLateCountsFromThen(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	server := apiServer(func(context.Context) error { return nil }, recovering(w))
	var of *target
	w.read = func(_ client.ObjectKey, found *target) { of = found }
	g.Expect(w.Frozen(cluster).Unread).To(BeTrue())
	w.clock.Step(time.Minute)
	done, read := w.attempt(t.Context(), server, cluster, of)
	g.Expect(done && read).To(BeTrue())
	g.Expect(w.Frozen(cluster).Until).To(Equal(w.clock.Now().Add(DefaultGrace)))
}

// TestNothingIsKeptOfAClusterThatIsGone: neither what was known of it, nor what a caller reads of it, nor what a late event of its
// connection brings.
func TestNothingIsKeptOfAClusterThatIsGone(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	var broken atomic.Bool
	server := apiServer(func(context.Context) error {
		if broken.Load() {
			return errors.New("broken")
		}
		return nil
	}, named(cluster))
	ended := make(chan struct{}, 10)
	w.read = func(key client.ObjectKey, of *target) {
		go func() {
			w.readUntilKnown(t.Context(), server, key, of)
			ended <- struct{}{}
		}()
	}
	known := func() int {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		return len(w.clusters)
	}
	w.Count(cluster)
	w.Frozen(cluster)
	g.Eventually(ended).Should(Receive())
	g.Expect(known()).To(Equal(1))
	w.Forget(cluster)
	g.Expect(known()).To(BeZero())
	g.Expect(server.Delete(t.Context(), named(cluster))).To(Succeed())
	w.turn(cluster)
	g.Eventually(ended).Should(Receive())
	g.Expect(known()).To(BeZero(), "its connection has ended after it")

	broken.Store(true)
	w.Frozen(cluster)
	w.Forget(cluster)
	g.Eventually(ended).Should(Receive(), "no caller waits for it any more")
	g.Expect(known()).To(BeZero())
}

// TestReadingEndsWithTheProcess although the Cluster was not read.
func TestReadingEndsWithTheProcess(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	ctx, cancel := context.WithCancel(t.Context())
	server := apiServer(func(context.Context) error { return errors.New("broken") })
	ended := make(chan struct{})
	w.read = func(key client.ObjectKey, of *target) {
		go func() {
			w.readUntilKnown(ctx, server, key, of)
			close(ended)
		}()
	}
	w.Frozen(cluster)
	cancel()
	g.Eventually(ended).Should(BeClosed())
}

// TestALeaseThatCannotBeReadAtTheStart is read again until it can be, also if the check of the API server is turned off. Until then nothing
// is replaced however long that takes, and the state says what is awaited; then Nodes are compared with Machines.
func TestALeaseThatCannotBeReadAtTheStart(t *testing.T) {
	for name, period := range map[string]time.Duration{"checked": DefaultPeriod, "not checked": 0} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(0)
			w.Freezer.options.Period = period
			w.Freezer.start = start{at: w.clock.Now()}
			lease := leaseOf(func(l *coordinationv1.Lease) {
				l.ResourceVersion = ""
				l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(w.clock.Now().Add(-2 * time.Hour)))
			})
			broken := errors.New("broken")
			server := apiServer(func(context.Context) error { return broken }, lease)
			key := client.ObjectKeyFromObject(lease)
			g.Expect(w.ReadLease(t.Context(), server, key)).To(MatchError(broken))
			p := &Probe{Freezer: w.Freezer, Clock: w.clock, Reader: server, Writer: server, Lease: key}
			g.Expect(p.round(t.Context())).To(Equal(DefaultTimeout / rechecks))
			w.controlAnswered(t.Context())
			w.clock.Step(DefaultRestoreGrace)
			state := w.Frozen(cluster)
			g.Expect(state.Reason).To(Equal(CoreWasAwayReason))
			g.Expect(state.Message).To(ContainSubstring("until the lease of the core has been read, which shows whether one was running before this one: broken"))
			g.Expect(state.Until).To(BeZero())
			g.Expect(state.Routine).To(BeFalse(), "it is worth a condition")
			_, look := w.restorable(cluster)
			g.Expect(look).To(Equal(awaited))
			g.Expect((&Examiner{Freezer: w.Freezer}).Reconcile(t.Context(), ctrl.Request{NamespacedName: cluster})).To(Equal(ctrl.Result{}))
			g.Expect(w.unexamined(client.ObjectKey{})).To(Equal([]client.ObjectKey{cluster}), "it is looked at when the lease was read")

			broken, w.changes = nil, nil
			g.Expect(p.round(t.Context())).To(Equal(period))
			g.Expect(w.changes).To(ContainElement(client.ObjectKey{}), "all look again")
			g.Expect(w.Frozen(cluster).Message).To(ContainSubstring("until the Nodes have been compared with the Machines"))
			since, look := w.restorable(cluster)
			g.Expect(look).To(Equal(needed), "although the core has been at work for an hour")
			g.Expect(since).To(BeTemporally("==", w.begun().Add(-2*time.Hour)))
			g.Expect(server.Get(t.Context(), key, lease)).To(Succeed())
			g.Expect(lease.Annotations).To(HaveKey(AwayAnnotation), "the next core knows of it")
			w.examined(cluster, "")
			g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
		})
	}
}

// TestAFirstInstallation: there is no lease, and Clusters that are created then are not frozen for a time before them. Those that were
// there are until they were looked at.
func TestAFirstInstallation(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(-1)
	created, old := named(cluster), named(other)
	created.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(time.Minute))
	old.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(-time.Hour))
	w.RecallAtOnce(apiServer(func(context.Context) error { return nil }, created, old))
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	g.Expect(w.NotBefore(cluster)).To(BeZero())
	_, look := w.restorable(cluster)
	g.Expect(look).To(Equal(notNeeded))
	w.clock.Step(DefaultGrace)
	g.Expect(w.Frozen(other).Active()).To(BeTrue())
	e := &Examiner{
		Freezer: w.Freezer, Client: indexed(), APIReader: indexed(),
		Nodes: func(client.ObjectKey) ([]*corev1.Node, bool) { return nil, true },
	}
	g.Expect(e.Reconcile(t.Context(), ctrl.Request{NamespacedName: other})).To(Equal(ctrl.Result{}))
	g.Expect(w.Frozen(other).Active()).To(BeFalse(), "not for ever")
}

// TestVanishedInstancesWithoutALease are a sign, of Machines that were there before the core.
func TestVanishedInstancesWithoutALease(t *testing.T) {
	for age, frozen := range map[time.Duration]string{time.Minute: RestoreSuspectedReason, -time.Minute: ""} {
		g := NewWithT(t)
		w := newWorld(-1)
		w.Freezer.options.Grace = 0
		cached := fake.NewClientBuilder().WithScheme(testenv.Scheme()).
			WithObjects(machine("m", "InstanceVanished", w.clock.Now().Add(-age))).
			WithIndex(&clusterv1.Machine{}, index.Cluster, func(client.Object) []string { return []string{cluster.Name} }).Build()
		e := &Examiner{
			Freezer: w.Freezer, Client: cached, APIReader: cached,
			Nodes: func(client.ObjectKey) ([]*corev1.Node, bool) { return nil, true },
		}
		_, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: cluster})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Frozen(cluster).Reason).To(Equal(frozen), age.String())
	}
}
