package freeze

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/index"
	"millwright.dev/test/testenv"
)

// apiServer is one whose reads go wrong as a test says.
func apiServer(read func(context.Context) error, objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(testenv.Scheme()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			if err := read(ctx); err != nil {
				return err
			}
			return c.List(ctx, list, o...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			if err := read(ctx); err != nil {
				return err
			}
			return c.Get(ctx, key, object, o...)
		},
	}).Build()
}

// TestCheck: an API server that fails is asked again sooner; when it has failed for the timeout, all is frozen.
func TestCheck(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	var failure error
	p := &Probe{Freezer: w.Freezer, Clock: w.clock, Reader: apiServer(func(context.Context) error { return failure })}
	g.Expect(p.check(t.Context())).To(Equal(DefaultPeriod))
	failure = errors.New("etcdserver: leader changed")
	asked := 0
	for !w.Frozen(cluster).Active() {
		asked++
		w.clock.Step(p.check(t.Context()))
		g.Expect(asked).To(BeNumerically("<=", rechecks))
	}
	g.Expect(asked).To(Equal(rechecks))
	g.Expect(w.Frozen(cluster).Message).To(ContainSubstring("etcdserver: leader changed"))
	failure = nil
	g.Expect(p.check(t.Context())).To(Equal(DefaultPeriod))
	g.Expect(w.Frozen(cluster).Reason).To(Equal(RecoveringReason))
}

// TestAnAPIServerThatHangs: the request ends with the timeout, and what it was counts from its beginning.
func TestAnAPIServerThatHangs(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.Freezer.options.Timeout = time.Millisecond
	p := &Probe{Freezer: w.Freezer, Clock: w.clock, Reader: apiServer(func(ctx context.Context) error {
		<-ctx.Done()
		w.clock.Step(time.Millisecond)
		return ctx.Err()
	})}
	p.check(t.Context())
	g.Expect(w.Frozen(cluster).Reason).To(Equal(ControlAPIServerUnreachableReason))
}

// TestAnAPIServerThatIsSlow: each answer that comes within the timeout is one.
func TestAnAPIServerThatIsSlow(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	p := &Probe{Freezer: w.Freezer, Clock: w.clock, Reader: apiServer(func(context.Context) error {
		w.clock.Step(DefaultTimeout - 1)
		return nil
	})}
	for range 10 {
		w.clock.Step(p.check(t.Context()))
		g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	}
}

// TestATargetThatIsSlow: a probe that is under way for longer than a moment freezes nothing before the timeout, however often that happens
// and however short the timeout is.
func TestATargetThatIsSlow(t *testing.T) {
	for _, timeout := range []time.Duration{3 * time.Second, DefaultTimeout} {
		g := NewWithT(t)
		w := newWorld(0)
		w.Freezer.options.Timeout = timeout
		w.turn(cluster)
		for range 10 {
			w.clock.Step(10 * time.Second)
			w.lose(cluster)
			w.clock.Step(timeout - 1)
			g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
			w.restore(cluster)
			g.Expect(w.NotBefore(cluster)).To(BeZero())
		}
	}
}

// TestTheEndOfTheProcessIsNoOutage: a request that was given up because the manager exits means nothing.
func TestTheEndOfTheProcessIsNoOutage(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	ctx, cancel := context.WithCancel(t.Context())
	p := &Probe{Freezer: w.Freezer, Clock: w.clock, Reader: apiServer(func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	})}
	p.check(ctx)
	w.clock.Step(time.Hour)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	g.Expect(p.NeedLeaderElection()).To(BeFalse(), "a standby knows what has happened while it waited")
}

func TestNoCheck(t *testing.T) {
	w := newWorld(0)
	w.Freezer.options.Period = 0
	NewWithT(t).Expect((&Probe{Freezer: w.Freezer}).Start(t.Context())).To(Succeed())
}

// TestReadLease: the lease of a core that was here before this process says when one was last at work; that of one that took it since
// says nothing.
func TestReadLease(t *testing.T) {
	key := client.ObjectKey{Namespace: "s", Name: "l"}
	begin := newWorld(0).clock.Now()
	lease := func(acquired, renewed time.Duration) *coordinationv1.Lease {
		from, to := metav1.NewMicroTime(begin.Add(acquired)), metav1.NewMicroTime(begin.Add(renewed))
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Spec:       coordinationv1.LeaseSpec{AcquireTime: &from, RenewTime: &to},
		}
	}
	broken := errors.New("broken")
	unacquired, unrenewed := lease(0, -time.Minute), lease(-time.Hour, 0)
	unacquired.Spec.AcquireTime, unrenewed.Spec.RenewTime = nil, nil
	for _, c := range []struct {
		name  string
		lease *coordinationv1.Lease
		fails error
		last  time.Time
	}{
		{"of a predecessor", lease(-time.Hour, -time.Minute), nil, begin.Add(-time.Minute)},
		{"taken since", lease(time.Second, 2*time.Second), nil, time.Time{}},
		{"never acquired", unacquired, nil, begin.Add(-time.Minute)},
		{"never renewed", unrenewed, nil, time.Time{}},
		{"none", nil, nil, time.Time{}},
		{"not readable", lease(-time.Hour, -time.Minute), broken, time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(0)
			w.Freezer.start = start{at: begin}
			g.Expect(w.Frozen(cluster).Reason).To(Equal(CoreWasAwayReason), "before it was read nothing is known")
			g.Expect(w.Frozen(cluster).Routine).To(BeTrue(), "and perhaps never will be")
			var objects []client.Object
			if c.lease != nil {
				objects = append(objects, c.lease)
			}
			err := w.ReadLease(t.Context(), apiServer(func(context.Context) error { return c.fails }, objects...), key)
			g.Expect(errors.Is(err, c.fails)).To(BeTrue())
			g.Expect(w.Freezer.start.last.Equal(c.last)).To(BeTrue())
			g.Expect(w.Freezer.start.known).To(Equal(c.fails == nil))
			g.Expect(w.leaseAwaited()).To(Equal(c.fails != nil))
		})
	}
}

// indexed is a cache without Machines.
func indexed() client.Client {
	return fake.NewClientBuilder().WithScheme(testenv.Scheme()).
		WithIndex(&clusterv1.Machine{}, index.Cluster, func(client.Object) []string { return nil }).Build()
}

// node is one that a core has linked to a Machine.
func node(name, machine string, created time.Time) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(created), Annotations: map[string]string{
		clusterv1.ClusterNamespaceAnnotation: cluster.Namespace, clusterv1.ClusterNameAnnotation: cluster.Name,
		clusterv1.MachineAnnotation: machine,
	}}}
}

// TestMachineless: only Nodes that a core has linked to this Cluster, after the backup.
func TestMachineless(t *testing.T) {
	g := NewWithT(t)
	backup := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	after := backup.Add(time.Second)
	stranger := node("stranger", "m", after)
	stranger.Annotations[clusterv1.ClusterNameAnnotation] = "another"
	elsewhere := node("elsewhere", "m", after)
	elsewhere.Annotations[clusterv1.ClusterNamespaceAnnotation] = "another"
	var names []string
	for _, found := range machineless(cluster, []*corev1.Node{
		node("new", "m", after), node("old", "m", backup), node("unlinked", "", after), stranger, elsewhere,
	}, backup) {
		names = append(names, found.Name)
	}
	g.Expect(names).To(Equal([]string{"new"}))
}

// TestExaminer looks only when a backup may have been restored, asks the API server, and concludes nothing while it cannot.
func TestExaminer(t *testing.T) {
	for _, c := range []struct {
		name     string
		gap      time.Duration
		age      time.Duration
		unread   bool
		broken   error
		frozen   string
		examined bool
	}{
		{name: "a Node without a Machine", gap: 2 * time.Hour, frozen: RestoreSuspectedReason, examined: true},
		{name: "no longer than a change of the leader", gap: restoreGap, frozen: CoreWasAwayReason, examined: true},
		{name: "no lease", gap: -1, frozen: RestoreSuspectedReason, examined: true},
		{name: "long after the start", gap: 2 * time.Hour, age: DefaultRestoreGrace, examined: true},
		{name: "Nodes that cannot be read", gap: 2 * time.Hour, unread: true, frozen: CoreWasAwayReason},
		{name: "an API server that fails", gap: 2 * time.Hour, broken: errors.New("broken"), frozen: CoreWasAwayReason},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(c.gap)
			w.Freezer.options.Grace = time.Second
			nodes := []*corev1.Node{node("lost", "lost", w.clock.Now().Add(-time.Second)), node("kept", "kept", w.clock.Now().Add(-time.Second))}
			kept := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "kept"}}
			w.clock.Step(c.age)
			e := &Examiner{
				Freezer:   w.Freezer,
				Client:    indexed(),
				APIReader: apiServer(func(context.Context) error { return c.broken }, kept),
				Nodes:     func(client.ObjectKey) ([]*corev1.Node, bool) { return nodes, !c.unread },
			}
			_, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: cluster})
			g.Expect(errors.Is(err, c.broken)).To(BeTrue())
			g.Expect(w.Frozen(cluster).Reason).To(Equal(c.frozen))
			g.Expect(w.Freezer.clusters[cluster].examined).To(Equal(c.examined))
			if c.frozen == RestoreSuspectedReason {
				g.Expect(w.Frozen(cluster).Message).To(And(ContainSubstring("Machines that do not exist"), ContainSubstring(": lost.")))
			}
		})
	}
}
