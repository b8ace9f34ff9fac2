package freeze

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaseOf is a lease of version 1000 that a core renewed at noon.
func leaseOf(change func(*coordinationv1.Lease)) *coordinationv1.Lease {
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "s", Name: "l", UID: "u", ResourceVersion: "1000", CreationTimestamp: metav1.NewTime(noon.Add(-24 * time.Hour)),
	}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = ptr.To("a"), ptr.To(int32(5))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(noon))
	if change != nil {
		change(lease)
	}
	return lease
}

// TestSetBack: what shows that a management cluster was restored while the core ran, whatever its resourceVersion is; and what does not.
func TestSetBack(t *testing.T) {
	renewed := func(lease *coordinationv1.Lease, after time.Duration) {
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(lease.Spec.RenewTime.Add(after)))
	}
	another := func(lease *coordinationv1.Lease, uid types.UID, age time.Duration) {
		lease.UID, lease.CreationTimestamp = uid, metav1.NewTime(lease.CreationTimestamp.Add(age))
	}
	for name, c := range map[string]struct {
		change func(*coordinationv1.Lease)
		want   string
	}{
		"the same":                     {func(*coordinationv1.Lease) {}, ""},
		"renewed":                      {func(l *coordinationv1.Lease) { l.ResourceVersion = "1001"; renewed(l, time.Minute) }, ""},
		"an earlier version":           {func(l *coordinationv1.Lease) { l.ResourceVersion = "999" }, "resourceVersion went back from 1000 to 999"},
		"equal, renewed at other time": {func(l *coordinationv1.Lease) { renewed(l, time.Second) }, "resourceVersion 1000 is another one"},
		"equal, held by another":       {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("b") }, `holder "b"`},
		"equal, another object":        {func(l *coordinationv1.Lease) { l.UID = "v" }, "UID v"},
		"equal, fewer transitions":     {func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(4)) }, "transitions 4"},
		"higher, fewer transitions": {func(l *coordinationv1.Lease) {
			l.ResourceVersion, l.Spec.LeaseTransitions = "2000", ptr.To(int32(4))
			renewed(l, time.Minute)
		}, "leaseTransitions of the core went back from 5 to 4"},
		"higher, another holder without a transition": {func(l *coordinationv1.Lease) {
			l.ResourceVersion, l.Spec.HolderIdentity = "2000", ptr.To("b")
			renewed(l, time.Minute)
		}, "is held by b instead of a"},
		"higher, renewed earlier": {func(l *coordinationv1.Lease) { l.ResourceVersion = "2000"; renewed(l, -2*time.Minute) },
			"renewTime of the lease of the core went back from 2026-11-23T12:00:00Z to 2026-11-23T11:58:00Z"},
		"higher, the clock was corrected": {func(l *coordinationv1.Lease) { l.ResourceVersion = "2000"; renewed(l, -restoreGap) }, ""},
		"given up": {func(l *coordinationv1.Lease) {
			l.ResourceVersion, l.Spec.HolderIdentity = "1001", ptr.To("")
			renewed(l, time.Second)
		}, ""},
		"taken by a core whose clock is behind": {func(l *coordinationv1.Lease) {
			l.ResourceVersion, l.Spec.HolderIdentity, l.Spec.LeaseTransitions = "1001", ptr.To("b"), ptr.To(int32(6))
			renewed(l, -2*time.Minute)
		}, ""},
		"deleted, and created again by the core": {func(l *coordinationv1.Lease) {
			l.ResourceVersion, l.Spec.LeaseTransitions = "2000", ptr.To(int32(0))
			another(l, "v", 24*time.Hour)
			renewed(l, time.Minute)
		}, ""},
		"an object from before that one": {func(l *coordinationv1.Lease) {
			l.ResourceVersion = "2000"
			another(l, "v", -time.Hour)
			renewed(l, time.Minute)
		}, "an older one, with the UID v instead of u"},
		"created again from a backup": {func(l *coordinationv1.Lease) {
			l.ResourceVersion = "2000"
			another(l, "v", 24*time.Hour)
			renewed(l, -time.Hour)
		}, "renewTime of the lease of the core went back"},
		"never renewed": {func(l *coordinationv1.Lease) { l.ResourceVersion, l.Spec.RenewTime = "1001", nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := setBack(leaseOf(nil), leaseOf(c.change), true)
			if c.want == "" {
				g.Expect(found).To(BeEmpty())
				return
			}
			g.Expect(found).To(ContainSubstring(c.want))
		})
	}
}

// TestARestoreWhoseVersionIsNotLower is noticed by the probe all the same.
func TestARestoreWhoseVersionIsNotLower(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	lease := leaseOf(func(l *coordinationv1.Lease) { l.ResourceVersion = "" })
	server := apiServer(func(context.Context) error { return nil }, lease)
	p := &Probe{Freezer: w.Freezer, Clock: w.clock, Reader: server, Lease: client.ObjectKeyFromObject(lease)}
	p.check(t.Context())
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	g.Expect(server.Get(t.Context(), p.Lease, lease)).To(Succeed())
	lease.Spec.LeaseTransitions = ptr.To(int32(2))
	g.Expect(server.Update(t.Context(), lease)).To(Succeed())
	p.check(t.Context())
	state := w.Frozen(cluster)
	g.Expect(state.Reason).To(Equal(RestoreSuspectedReason))
	g.Expect(state.Message).To(ContainSubstring("leaseTransitions of the core went back from 5 to 2"))
	p.check(t.Context())
	g.Expect(w.changes).To(HaveLen(1), "it is noticed once")
}

// TestAClockThatIsSetBackIsNoRestore: the renewals of this core go back with its clock, at the next look or at the one after it.
func TestAClockThatIsSetBackIsNoRestore(t *testing.T) {
	for name, jumped := range map[string]time.Duration{"the clock was set back": -time.Hour, "it was not set": 0} {
		g := NewWithT(t)
		w := newWorld(0)
		lease := leaseOf(nil)
		p := &Probe{Freezer: w.Freezer, Clock: w.clock}
		p.compare(t.Context(), lease)
		if jumped != 0 {
			w.jump(jumped)
			w.Frozen(cluster)
		}
		renewed := func(version string, after time.Duration) *coordinationv1.Lease {
			return leaseOf(func(l *coordinationv1.Lease) {
				l.ResourceVersion = version
				l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(l.Spec.RenewTime.Add(after)))
			})
		}
		p.compare(t.Context(), renewed("1001", time.Second))
		w.clock.Step(DefaultPeriod)
		p.compare(t.Context(), renewed("1002", DefaultPeriod-time.Hour))
		g.Expect(w.Frozen(cluster).Reason == RestoreSuspectedReason).To(Equal(jumped == 0), name)
	}
}
