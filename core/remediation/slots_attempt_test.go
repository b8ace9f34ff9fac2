package remediation_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

// TestAnAttemptThatDiesBeforeItBegins keeps no place for longer than any other decision that was not recorded: the API server is asked, and
// shows nothing. To end an attempt twice ends no other one.
func TestAnAttemptThatDiesBeforeItBegins(t *testing.T) {
	g := NewWithT(t)
	slots, clock := &remediation.Slots{}, testingclock.NewFakeClock(Epoch)
	view := seen(map[types.UID][]remediation.Set{"d": {{Replicas: 2}}})
	verify(slots, view, Epoch)
	over := func() {}
	die := func() {
		defer func() { g.Expect(recover()).To(Equal("dies")) }()
		decision := slots.Decide(inCluster, "d", view, asking(1, 9, Epoch, "a"))
		g.Expect(allowed(decision)).To(Equal([]string{"a"}))
		over = slots.Attempt(inCluster, "d", decision, clock)
		defer over()
		panic("dies")
	}
	die()
	g.Expect(allowed(decide(slots, "d", view, asking(1, 9, Epoch.Add(time.Second), "b")))).
		To(BeEmpty(), "it may be recorded for all that is known")
	later := Epoch.Add(remediation.UnseenTimeout)
	g.Expect(slots.Unverified(inCluster, view, later).Any()).To(BeTrue(), "the attempt is over")
	verify(slots, view, later)
	g.Expect(decide(slots, "d", view, asking(1, 9, later)).InFlight).To(BeZero())
	g.Expect(allowed(slots.Decide(inCluster, "d", view, asking(1, 9, later, "a")))).To(Equal([]string{"a"}))
	over()
	g.Expect(slots.Unverified(inCluster, view, later.Add(remediation.UnseenTimeout)).Any()).To(BeFalse(), "the second attempt continues")
}

// TestWhoseSlotCanBeReleased: that of a first attempt, also of a replacement, which keeps its place as one; not that of a Machine for which
// an attempt was made before, whatever came of that.
func TestWhoseSlotCanBeReleased(t *testing.T) {
	g := NewWithT(t)
	slots, clock := &remediation.Slots{}, testingclock.NewFakeClock(Epoch)
	coming := Machine("a", replaces("old"))
	view := seen(map[types.UID][]remediation.Set{"d": {{Replicas: 1, Machines: []*clusterv1.Machine{coming}}}})
	verify(slots, view, Epoch)
	for _, first := range []bool{true, true, false} {
		decision := slots.Decide(inCluster, "d", view, asking(1, 9, Epoch, "a"))
		g.Expect(allowed(decision)).To(Equal([]string{"a"}))
		g.Expect(decision.Results[0].Fresh).To(BeFalse())
		g.Expect(decision.Results[0].First).To(Equal(first))
		slots.Attempt(inCluster, "d", decision, clock)()
		if !clock.Now().After(Epoch) {
			slots.Release(inCluster, "d", "a")
		}
		clock.Step(time.Second)
	}
	g.Expect(decide(slots, "d", view, asking(1, 9, Epoch)).InFlight).To(Equal(1))
}

// TestAnAttemptEndsNoOther: two attempts for one Machine are both waited for, and a decision that grants nothing ends none.
func TestAnAttemptEndsNoOther(t *testing.T) {
	g := NewWithT(t)
	slots, clock := &remediation.Slots{}, testingclock.NewFakeClock(Epoch)
	view := seen(map[types.UID][]remediation.Set{"d": {{Replicas: 2}}})
	verify(slots, view, Epoch)
	late := Epoch.Add(99 * remediation.UnseenTimeout)
	attempt := func() func() {
		return slots.Attempt(inCluster, "d", slots.Decide(inCluster, "d", view, asking(1, 9, Epoch, "a")), clock)
	}
	first, second := attempt(), attempt()
	frozen := asking(1, 9, Epoch, "a")
	frozen.Unread, frozen.UnreadAtAll = "no answer", true
	refused := slots.Decide(inCluster, "d", view, frozen)
	g.Expect(allowed(refused)).To(BeEmpty())
	slots.Attempt(inCluster, "d", refused, clock)()
	first()
	g.Expect(slots.Unverified(inCluster, view, late).Any()).To(BeFalse(), "one is on its way")
	slots.Release(inCluster, "d", "a")
	g.Expect(decide(slots, "d", view, asking(1, 9, Epoch)).InFlight).To(Equal(1), "what is on its way may take effect yet")
	// The API server shows that one has taken effect; the other one may do so later, again.
	verify(slots, view, Epoch, toGo("a"))
	g.Expect(slots.Unverified(inCluster, view, late).Any()).To(BeFalse())
	second()
	g.Expect(slots.Unverified(inCluster, view, late).Any()).To(BeTrue())
	slots.Release(inCluster, "d", "a")
	slots.Release(inCluster, "d", "a")
	g.Expect(decide(slots, "d", view, asking(1, 9, Epoch)).InFlight).To(BeZero())
}

// TestASlotEndsWhenItsRecordIsSeen, once for all: when the record goes later, the place is free.
func TestASlotEndsWhenItsRecordIsSeen(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	set := remediation.Set{Machines: []*clusterv1.Machine{Machine("a", handed), Machine("b", handed)}, Replicas: 2}
	view := func() remediation.View { return seen(map[types.UID][]remediation.Set{"d": {set}}) }
	decide(&slots, "d", view(), asking(1, 9, Epoch, "a"))
	set.Records = []remediation.Record{{Machine: "a"}}
	g.Expect(allowed(decide(&slots, "d", view(), asking(1, 9, Epoch, "b")))).To(BeEmpty())
	set.Records = nil
	g.Expect(allowed(decide(&slots, "d", view(), asking(1, 9, Epoch, "b")))).To(Equal([]string{"b"}))
}

// TestAMachineTakesUpOnePlace of the Cluster, be it as a replacement that has not come up and as one that is to be replaced.
func TestAMachineTakesUpOnePlace(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	view := seen(
		map[types.UID][]remediation.Set{
			"d": {{Machines: []*clusterv1.Machine{Machine("a", handed, replaces("x")), Machine("b", handed)}, Replicas: 2}},
		},
	)
	g.Expect(allowed(decide(&slots, "d", view, asking(9, 2, Epoch, "a")))).To(Equal([]string{"a"}))
	g.Expect(allowed(decide(&slots, "d", view, asking(9, 2, Epoch, "b")))).To(Equal([]string{"b"}))
	g.Expect(decide(&slots, "d", view, asking(9, 2, Epoch)).InCluster).To(Equal(2))
}

// TestWhatOthersHaveInFlight is not of this deployment: its limit is its own.
func TestWhatOthersHaveInFlight(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	g.Expect(slots.Unverified(inCluster, remediation.View{}, Epoch).Any()).To(BeTrue(), "the API server was not asked since the start")
	view := seen(map[types.UID][]remediation.Set{
		"d": {{Machines: []*clusterv1.Machine{Machine("a", handed)}, Replicas: 1}},
		"e": {{Machines: []*clusterv1.Machine{Machine("gone", begun, Deleting)}, Replicas: 1}},
	})
	d := decide(&slots, "d", view, asking(1, 9, Epoch, "a"))
	g.Expect(allowed(d)).To(Equal([]string{"a"}))
	g.Expect([]int{d.InFlight, d.InCluster}).To(Equal([]int{1, 2}))
}

// TestARecordThatIsSeenTakesNoSlot: what is seen is not recorded once more, so that its place ends with the record.
func TestARecordThatIsSeenTakesNoSlot(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	set := remediation.Set{
		Machines: []*clusterv1.Machine{Machine("a", handed), Machine("b", handed)}, Replicas: 2, Records: []remediation.Record{{Machine: "a"}},
	}
	view := func() remediation.View { return seen(map[types.UID][]remediation.Set{"d": {set}}) }
	in := asking(1, 9, Epoch, "a")
	in.Candidates[0].Begun = true
	d := decide(&slots, "d", view(), in)
	g.Expect(allowed(d)).To(Equal([]string{"a"}))
	g.Expect(d.Results[0].First).To(BeFalse())
	set.Records = nil
	g.Expect(allowed(decide(&slots, "d", view(), asking(1, 9, Epoch, "b")))).To(Equal([]string{"b"}))
}

// TestWhatIsBeingRecordedIsNotWaitedForLong: a set that finds a place taken by a replacement that is about to be recorded reconciles
// again soon. If that is refused the place is given back, and no event says so. One that has been recorded, or may have been, is an
// event.
func TestWhatIsBeingRecordedIsNotWaitedForLong(t *testing.T) {
	g := NewWithT(t)
	slots := &remediation.Slots{}
	view := seen(map[types.UID][]remediation.Set{"d": {{Replicas: 2}}})
	verify(slots, view, Epoch)
	ask := func(now time.Time) remediation.Decision {
		return slots.Decide(inCluster, "d", view, asking(1, 9, now, "b"))
	}
	first := slots.Decide(inCluster, "d", view, asking(1, 9, Epoch, "a"))
	g.Expect(allowed(first)).To(Equal([]string{"a"}))

	blocked := ask(Epoch)
	g.Expect(allowed(blocked)).To(BeEmpty())
	g.Expect(blocked.Next).To(Equal(Epoch.Add(time.Second)))
	later := Epoch.Add(10 * time.Second)
	g.Expect(ask(later).Next).To(Equal(later.Add(10*time.Second)), "the request hangs")
	slots.Attempted(inCluster, "d", granted(first), later)
	g.Expect(ask(later).Next).To(Equal(later.Add(remediation.UnseenTimeout)), "it may have been recorded")
	slots.Release(inCluster, "d", "a")
	g.Expect(allowed(ask(later))).To(Equal([]string{"b"}))
}
