package freeze

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestNothingIsFrozenWhileAllAnswer(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(15 * time.Second)
	for range 100 {
		g.Expect(w.Frozen(cluster)).To(Equal(State{}))
		g.Expect(w.NotBefore(cluster)).To(BeZero())
		w.clock.Step(time.Minute)
	}
	g.Expect(w.changes).To(BeEmpty())
}

// TestATargetThatDoesNotAnswer: frozen after the timeout, until the grace after its answer has passed, and only there.
func TestATargetThatDoesNotAnswer(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.turn(cluster)
	lost := w.clock.Now()
	w.lose(cluster)
	g.Expect(w.Frozen(cluster)).To(Equal(State{Next: lost.Add(DefaultTimeout)}), "a moment is no outage")
	w.clock.Step(DefaultTimeout)
	state := w.Frozen(cluster)
	g.Expect(state.Reason).To(Equal(TargetAPIServerUnreachableReason))
	g.Expect(state.Since).To(Equal(lost))
	g.Expect(state.Until).To(BeZero())
	g.Expect(state.Message).To(ContainSubstring("has not answered since 2026-11-23T12:00:00Z: connection refused"))
	g.Expect(w.NotBefore(cluster)).To(BeTemporally(">", w.clock.Now().Add(24*time.Hour)))
	g.Expect(w.Frozen(other).Active()).To(BeFalse())

	w.clock.Step(10 * time.Minute)
	w.restore(cluster)
	back := w.clock.Now()
	state = w.Frozen(cluster)
	g.Expect(state.Reason).To(Equal(RecoveringReason))
	g.Expect(state.Until).To(Equal(back.Add(DefaultGrace)))
	w.clock.Step(DefaultGrace - 1)
	g.Expect(w.Frozen(cluster).Active()).To(BeTrue())
	w.clock.Step(1)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	g.Expect(w.NotBefore(cluster)).To(Equal(back.Add(DefaultGrace)))
	g.Expect(w.changes).To(ContainElement(cluster))
}

func TestAShortInterruptionFreezesNothing(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.turn(cluster)
	w.lose(cluster)
	w.clock.Step(DefaultTimeout - 1)
	w.restore(cluster)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	g.Expect(w.NotBefore(cluster)).To(BeZero())
}

// TestATargetThatFlaps: each outage begins a grace of its own.
func TestATargetThatFlaps(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.turn(cluster)
	for range 5 {
		w.lose(cluster)
		w.clock.Step(time.Minute)
		w.restore(cluster)
		w.clock.Step(DefaultGrace / 2)
		g.Expect(w.Frozen(cluster).Active()).To(BeTrue())
	}
}

// TestAClusterThatIsNewIsNotFrozenForItsPast: nothing asked about it before, so it has not failed to answer since the start of the core.
func TestAClusterThatIsNewIsNotFrozenForItsPast(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	young := named(cluster)
	young.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(3*time.Hour - DefaultTimeout + time.Second))
	w.RecallAtOnce(apiServer(func(context.Context) error { return nil }, young))
	w.down[cluster] = w.clock.Now()
	w.clock.Step(3 * time.Hour)
	g.Expect(w.Frozen(cluster)).To(Equal(State{Next: w.clock.Now().Add(DefaultTimeout)}))
	w.clock.Step(DefaultTimeout)
	g.Expect(w.Frozen(cluster).Since).To(Equal(w.clock.Now().Add(-DefaultTimeout)))
}

// TestTheManagementCluster freezes all Clusters, and notifies all.
func TestTheManagementCluster(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.controlFailed(t.Context(), w.clock.Now(), errTest("etcd is away"))
	g.Expect(w.changes).To(BeEmpty())
	w.clock.Step(DefaultTimeout)
	w.controlFailed(t.Context(), w.clock.Now(), errTest("etcd is away"))
	for _, key := range []client.ObjectKey{cluster, other} {
		g.Expect(w.Frozen(key).Reason).To(Equal(ControlAPIServerUnreachableReason))
		g.Expect(w.Frozen(key).Message).To(HaveSuffix("etcd is away"))
	}
	g.Expect(w.changes).To(Equal([]client.ObjectKey{{}}))
	w.controlAnswered(t.Context())
	g.Expect(w.Frozen(other).Reason).To(Equal(RecoveringReason))
	g.Expect(w.changes).To(HaveLen(2))
	w.clock.Step(DefaultGrace)
	g.Expect(w.Frozen(other).Active()).To(BeFalse())
}

type errTest string

func (e errTest) Error() string { return string(e) }

// TestTheClockJumps: whatever has lasted long by the new clock may not have.
func TestTheClockJumps(t *testing.T) {
	for _, c := range []struct {
		by     time.Duration
		frozen bool
		text   string
	}{
		{time.Hour, true, "set forward by 1h0m0s"},
		{-time.Hour, true, "set back by 1h0m0s"},
		{jumpTolerance, true, "set forward by 30s"},
		{-jumpTolerance, true, "set back by 30s"},
		{jumpTolerance - 1, false, ""},
		{1 - jumpTolerance, false, ""},
	} {
		t.Run(c.by.String(), func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(0)
			w.clock.Step(time.Hour)
			w.jump(c.by)
			state := w.Frozen(cluster)
			g.Expect(state.Active()).To(Equal(c.frozen))
			g.Expect(state.Message).To(ContainSubstring(c.text))
			if !c.frozen {
				return
			}
			g.Expect(state.Reason).To(Equal(ClockJumpedReason))
			g.Expect(w.NotBefore(cluster)).To(Equal(w.clock.Now().Add(DefaultGrace)))
			w.clock.Step(DefaultGrace)
			g.Expect(w.Frozen(cluster).Active()).To(BeFalse(), "the new time is the time")
		})
	}
}

// TestTheStart: what is known of the time before.
func TestTheStart(t *testing.T) {
	for _, c := range []struct {
		name   string
		gap    time.Duration
		frozen bool
		text   string
	}{
		{"a change of the leader", 17 * time.Second, false, ""},
		{"exactly the timeout", DefaultTimeout, false, ""},
		{"an upgrade that took its time", DefaultTimeout + time.Second, true, "no core was running from 2026-11-23T11:59:29Z to 2026-11-23T12:00:00Z"},
		{"no lease", -1, true, "it is not known whether a core was running before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(c.gap)
			state := w.Frozen(cluster)
			g.Expect(state.Active()).To(Equal(c.frozen))
			g.Expect(state.Message).To(ContainSubstring(c.text))
			if c.frozen {
				g.Expect(state.Reason).To(Equal(CoreWasAwayReason))
				g.Expect(state.Until).To(Equal(w.clock.Now().Add(DefaultGrace)))
				g.Expect(state.Routine).To(BeFalse(), "there may be a lease the next time")
			}
			w.examined(cluster, "")
			w.clock.Step(DefaultGrace)
			g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
		})
	}
}

// TestNothingIsReplacedBeforeTheNodesWereCompared: a target cluster may be connected late.
func TestNothingIsReplacedBeforeTheNodesWereCompared(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(2 * time.Hour)
	w.clock.Step(time.Hour)
	g.Expect(w.Frozen(cluster).Reason).To(Equal(CoreWasAwayReason))
	g.Expect(w.Frozen(cluster).Until).To(BeZero())
	w.examined(cluster, "")
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	g.Expect(w.changes).To(Equal([]client.ObjectKey{cluster}))
	w.examined(cluster, "")
	g.Expect(w.changes).To(HaveLen(1), "nothing has changed")
}

// TestDismissal ends whatever would end by itself, for that Cluster alone; an API server that does not answer stays one.
func TestDismissal(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(2 * time.Hour)
	w.examined(cluster, "Nodes without Machines: n1")
	g.Expect(w.Frozen(cluster).Reason).To(Equal(RestoreSuspectedReason))
	w.changes = nil
	w.clock.Step(time.Second)
	w.Dismiss(cluster)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	g.Expect(w.NotBefore(cluster)).To(BeTemporally("<=", w.clock.Now()))
	g.Expect(w.Frozen(other).Active()).To(BeTrue())
	g.Expect(w.changes).To(Equal([]client.ObjectKey{cluster}))
	w.Dismiss(cluster)
	g.Expect(w.changes).To(HaveLen(1), "what is over enqueues nothing: the annotation may be there for long")

	w.clock.Step(time.Second)
	w.lose(cluster)
	w.clock.Step(DefaultTimeout)
	w.Dismiss(cluster)
	g.Expect(w.Frozen(cluster).Reason).To(Equal(TargetAPIServerUnreachableReason))
	w.restore(cluster)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse(), "the outage that was dismissed has no grace")
	w.clock.Step(time.Second)
	w.lose(cluster)
	w.clock.Step(DefaultTimeout)
	w.restore(cluster)
	g.Expect(w.Frozen(cluster).Reason).To(Equal(RecoveringReason), "the next one has")
}

func TestCounts(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.turn(cluster)
	w.turn(other)
	w.lose(cluster)
	w.clock.Step(time.Hour)
	g.Expect(w.counts()).To(BeEmpty(), "its control plane may never have been there")
	w.Count(cluster)
	w.Count(other)
	g.Expect(w.counts()).To(Equal(map[string]int{TargetAPIServerUnreachableReason: 1}))
	w.Forget(cluster)
	g.Expect(w.Frozen(cluster).Unread).To(BeTrue())
	w.clock.Step(time.Hour)
	g.Expect(w.Frozen(cluster).Unread).To(BeFalse(), "a late query")
	g.Expect(w.counts()).To(BeEmpty(), "and it is gone")
}

func TestSigns(t *testing.T) {
	g := NewWithT(t)
	g.Expect(signs("Nodes", nil)).To(BeEmpty())
	g.Expect(signs("Nodes", []string{"b", "a"})).To(Equal("Nodes: a, b"))
	g.Expect(signs("Nodes", strings.Split("abcde", ""))).To(Equal("Nodes: a, b, c, d, e"))
	g.Expect(signs("Nodes", strings.Split("abcdefg", ""))).To(Equal("Nodes: a, b, c, d, e and 2 more"))
}

func TestOptions(t *testing.T) {
	g := NewWithT(t)
	o := DefaultOptions()
	g.Expect(o.Validate()).To(Succeed())
	for _, wrong := range []func(*Options){
		func(o *Options) { o.Period = -1 }, func(o *Options) { o.Timeout = 0 }, func(o *Options) { o.Grace = -1 },
		func(o *Options) { o.RestoreGrace = -1 },
	} {
		o := DefaultOptions()
		wrong(&o)
		g.Expect(o.Validate()).NotTo(Succeed())
	}
	o = Options{Timeout: 1}
	g.Expect(o.Validate()).To(Succeed(), "each check can be turned off")
}
