package remediation_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

var inCluster = client.ObjectKey{Namespace: "ns", Name: "c"}

// seen is what the cache shows of deployments, each a single set that wants as many Machines as it has and the missing ones.
func seen(groups map[types.UID][]remediation.Set) remediation.View {
	view := remediation.View{Flights: map[types.UID]remediation.Flight{}}
	for group, sets := range groups {
		view.Flights[group] = remediation.InFlight(sets)
	}
	return view
}

// asking is a request for places for these Machines.
func asking(limit, inCluster int, now time.Time, names ...string) remediation.Input {
	in := remediation.Input{
		Now: now, Deployment: remediation.Limit{Max: limit}, Cluster: remediation.Limit{Max: inCluster},
		Stop: remediation.Limit{Max: remediation.Unlimited}, Retry: remediation.Retry{Max: -1},
	}
	for _, name := range names {
		in.Candidates = append(in.Candidates, remediation.Candidate{Name: name})
	}
	return in
}

// decide is a decision with the attempt to record what it grants, which takes no time.
func decide(slots *remediation.Slots, group types.UID, view remediation.View, in remediation.Input) remediation.Decision {
	d := slots.Decide(inCluster, group, view, in)
	slots.Attempted(inCluster, group, granted(d), in.Now)
	return d
}

func granted(d remediation.Decision) []remediation.Result {
	return slices.DeleteFunc(slices.Clone(d.Results), func(v remediation.Result) bool { return !v.Allowed() })
}

// verify has the API server asked, which shows these.
func verify(slots *remediation.Slots, view remediation.View, now time.Time, live ...remediation.Live) {
	slots.Verify(inCluster, slots.Unverified(inCluster, view, now), live, view, now)
}

// toGo is what the API server shows of a Machine whose replacement is recorded, coming of a replacement that has not come up.
func toGo(name string) remediation.Live {
	return remediation.Live{Slot: remediation.Slot{Group: "d", Machine: name}}
}

func coming(name string) remediation.Live {
	return remediation.Live{Slot: remediation.Slot{Group: "d", Machine: name}, Coming: true}
}

func allowed(d remediation.Decision) []string {
	names := []string{}
	for _, result := range d.Results {
		if result.Allowed() {
			names = append(names, result.Name)
		}
	}
	return names
}

// TestSlotsCountTheWholeDeployment shows what a count per MachineSet gets wrong: what an earlier revision's set replaces takes up room
// as well, and so does a replacement until it is available.
func TestSlotsCountTheWholeDeployment(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	set := func(names ...*clusterv1.Machine) remediation.Set {
		return remediation.Set{Machines: names, Replicas: len(names)}
	}
	view := seen(map[types.UID][]remediation.Set{"d": {
		set(Machine("old", begun, Deleting)), set(Machine("a", handed), Machine("b", handed), Machine("new", replaces("x"), Unavailable)),
	}})
	d := decide(&slots, "d", view, asking(3, 9, Epoch, "a", "b"))
	g.Expect(allowed(d)).To(Equal([]string{"a"}), "one goes in another set, one has not come up")
	g.Expect(d.InFlight).To(Equal(3))
	// The cache shows nothing of it yet, and another set asks.
	d = decide(&slots, "d", view, asking(3, 9, Epoch, "b"))
	g.Expect(allowed(d)).To(BeEmpty())
	g.Expect(d.Next).To(Equal(Epoch.Add(remediation.UnseenTimeout)), "the API server is asked about what nothing confirms")
	g.Expect(allowed(decide(&slots, "d", view, asking(3, 9, Epoch, "a", "b")))).To(Equal([]string{"a"}), "who has a slot keeps it")
	// Another deployment has a limit of its own, and shares that of the Cluster.
	g.Expect(allowed(decide(&slots, "other", view, asking(3, 4, Epoch, "e", "f")))).To(Equal([]string{"e"}))
	// What the cache shows is counted once.
	recorded := set(Machine("a", handed), Machine("b", handed), Machine("new", replaces("x", wasAvailable)))
	recorded.Records = []remediation.Record{{Machine: "a"}}
	view = seen(map[types.UID][]remediation.Set{"d": {set(Machine("old", begun, Deleting)), recorded}})
	d = decide(&slots, "d", view, asking(3, 9, Epoch, "b"))
	g.Expect(allowed(d)).To(Equal([]string{"b"}), "new is available")
}

func TestSlotsEnd(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	view := seen(
		map[types.UID][]remediation.Set{"d": {{Machines: []*clusterv1.Machine{Machine("a", handed), Machine("b", handed)}, Replicas: 2}}},
	)
	ask := func(now time.Time, name string) []string {
		return allowed(decide(&slots, "d", view, asking(1, 9, now, name)))
	}
	g.Expect(ask(Epoch, "a")).To(HaveLen(1))
	g.Expect(ask(Epoch, "b")).To(BeEmpty())
	slots.Release(inCluster, "d", "a")
	g.Expect(ask(Epoch, "b")).To(HaveLen(1), "given back")
	later := Epoch.Add(100 * remediation.UnseenTimeout)
	g.Expect(ask(later, "a")).To(BeEmpty(), "that nothing is seen of it proves nothing")
	verify(&slots, view, later)
	g.Expect(ask(later, "a")).To(HaveLen(1), "the API server says that nothing came of it")
	slots.Forget(inCluster)
	g.Expect(ask(Epoch, "b")).To(HaveLen(1))
}

// TestAnAttemptIsNotConcludedUpon: what the API server shows is of no use about a Machine while a request to record its replacement is on
// its way, nor if one has begun or ended since the question was raised.
func TestAnAttemptIsNotConcludedUpon(t *testing.T) {
	view := seen(
		map[types.UID][]remediation.Set{"d": {{Machines: []*clusterv1.Machine{Machine("a", handed), Machine("b", handed)}, Replicas: 2}}},
	)
	at := func(n int) time.Time { return Epoch.Add(time.Duration(n) * remediation.UnseenTimeout) }
	for name, test := range map[string]struct {
		meanwhile func(slots *remediation.Slots)
		want      []string
	}{
		"nothing":          {func(*remediation.Slots) {}, []string{"b"}},
		"another attempt":  {func(slots *remediation.Slots) { decide(slots, "d", view, asking(1, 9, at(2), "a")) }, []string{}},
		"it is on its way": {func(slots *remediation.Slots) { slots.Decide(inCluster, "d", view, asking(1, 9, at(1), "a")) }, []string{}},
		"it is on its way, by a clock that stands still": {
			func(slots *remediation.Slots) { slots.Decide(inCluster, "d", view, asking(1, 9, at(0), "a")) }, []string{}},
		"it is released":      {func(slots *remediation.Slots) { slots.Release(inCluster, "d", "a") }, []string{"b"}},
		"another one's":       {func(slots *remediation.Slots) { decide(slots, "e", view, asking(1, 9, at(2), "a")) }, []string{"b"}},
		"another core has it": {func(slots *remediation.Slots) { verify(slots, view, at(2), toGo("a")) }, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var slots remediation.Slots
			verify(&slots, view, Epoch)
			decide(&slots, "d", view, asking(1, 9, at(0), "a"))
			g.Expect(slots.Unverified(inCluster, view, at(1).Add(-1)).Any()).To(BeFalse())
			unverified := slots.Unverified(inCluster, view, at(1))
			g.Expect(unverified.Any()).To(BeTrue())
			test.meanwhile(&slots)
			slots.Verify(inCluster, unverified, nil, view, at(2))
			g.Expect(allowed(decide(&slots, "d", view, asking(1, 9, at(2), "b")))).To(Equal(test.want))
		})
	}
	g := NewWithT(t)
	var slots remediation.Slots
	verify(&slots, view, Epoch)
	d := slots.Decide(inCluster, "d", view, asking(1, 9, at(0), "a"))
	g.Expect(slots.Unverified(inCluster, view, at(9)).Any()).To(BeFalse(), "a request that hangs may take effect yet")
	g.Expect(slots.Decide(inCluster, "d", view, asking(1, 9, at(9), "b")).Next).To(Equal(at(10)))
	slots.Release(inCluster, "d", "a")
	g.Expect(allowed(decide(&slots, "d", view, asking(1, 9, at(9), "b")))).To(BeEmpty())
	slots.Attempted(inCluster, "d", granted(d), at(9))
	g.Expect(slots.Unverified(inCluster, view, at(10).Add(-1)).Any()).To(BeFalse())
	g.Expect(slots.Unverified(inCluster, view, at(10)).Any()).To(BeTrue())
	slots.Attempted(inCluster, "d", granted(d), at(11))
	g.Expect(slots.Unverified(inCluster, view, at(10)).Any()).To(BeTrue(), "there was one attempt")
}

// TestASlotWhoseReadFailed stays, and those that wait for its place say why, once it is overdue.
func TestASlotWhoseReadFailed(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	view := seen(
		map[types.UID][]remediation.Set{"d": {{Machines: []*clusterv1.Machine{Machine("a", handed), Machine("b", handed)}, Replicas: 2}}},
	)
	unread := func(now time.Time, atAll bool) remediation.Decision {
		in := asking(1, 9, now, "b")
		in.Unread, in.UnreadAtAll = "no answer", atAll
		return decide(&slots, "d", view, in)
	}
	g.Expect(unread(Epoch, true).Results[0].Blocker).To(Equal(remediation.Blocker{
		Reason: remediation.UnreadReason, Message: "Not replaced: cannot read which replacements are in flight in the Cluster: no answer",
	}))
	decide(&slots, "d", view, asking(1, 9, Epoch, "a"))
	g.Expect(unread(Epoch.Add(remediation.UnseenTimeout-1), false).Results[0].Blocker.Message).To(HaveSuffix("allows 1 replacement at once"))
	overdue := unread(Epoch.Add(remediation.UnseenTimeout), false)
	g.Expect(overdue.Next).To(Equal(Epoch.Add(2*remediation.UnseenTimeout)), "it is asked again later, and not at once")
	blocker := overdue.Results[0].Blocker
	g.Expect(blocker.Reason).To(Equal(remediation.MaxInFlightReason))
	g.Expect(blocker.Message).To(HaveSuffix("It cannot be read whether 1 of the Cluster are still in flight, so they still count: no answer"))
	in := asking(9, 1, Epoch.Add(remediation.UnseenTimeout), "b")
	in.Unread = "no answer"
	blocker = decide(&slots, "d", view, in).Results[0].Blocker
	g.Expect(blocker.Reason).To(Equal(remediation.MaxInFlightOfClusterReason))
	g.Expect(blocker.Message).To(ContainSubstring("no answer"))
	g.Expect(decide(&slots, "d", view, asking(1, 9, in.Now, "b")).Results[0].Blocker.Message).NotTo(ContainSubstring("cannot be read"))
}

// TestALeavingMachineConfirmsNothing: it goes, and the watch of the sets may not have shown its record by then.
func TestALeavingMachineConfirmsNothing(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	view := func(all ...*clusterv1.Machine) remediation.View {
		return seen(map[types.UID][]remediation.Set{"d": {{Machines: all, Replicas: 2}}})
	}
	decide(&slots, "d", view(Machine("a", handed), Machine("b", handed)), asking(1, 9, Epoch, "a"))
	leaving := view(Machine("a", begun, Deleting), Machine("b", handed))
	g.Expect(decide(&slots, "d", leaving, asking(2, 9, Epoch)).InFlight).To(Equal(1))
	gone := view(Machine("b", handed))
	g.Expect(allowed(decide(&slots, "d", gone, asking(1, 9, Epoch, "b")))).To(BeEmpty())
	g.Expect(decide(&slots, "d", gone, asking(1, 1, Epoch)).InCluster).To(Equal(1))
}

// TestOnDeleteOwesWhatTheDeploymentWants: between the moment at which an outdated set is scaled down permanently by one Machine, and
// that at which another one is scaled up for it, the place stays taken.
func TestOnDeleteOwesWhatTheDeploymentWants(t *testing.T) {
	g := NewWithT(t)
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{UID: "s", Annotations: map[string]string{
		remediation.ReplacingAnnotation: remediation.FormatRecords([]remediation.Record{{Machine: "a"}}),
	}}}
	set.Spec.Replicas = ptr.To(int32(1))
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{UID: "d"}}
	deployment.Spec.Replicas = ptr.To(int32(2))
	owned := []remediation.Owned{{MachineSet: set, Machines: []*clusterv1.Machine{Machine("b")}}}
	g.Expect(remediation.InFlight(remediation.SetsOf(deployment, owned)).Settled).To(HaveKey("a"), "a rollout has taken it")
	deployment.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	g.Expect(remediation.InFlight(remediation.SetsOf(deployment, owned)).Held).To(HaveKey("a"))
	deployment.Spec.Replicas = ptr.To(int32(1))
	g.Expect(remediation.InFlight(remediation.SetsOf(deployment, owned)).Settled).To(HaveKey("a"), "fewer are wanted")
}

func TestSlotsAfterARestart(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	stale := seen(
		map[types.UID][]remediation.Set{"d": {{Machines: []*clusterv1.Machine{Machine("a", handed), Machine("b", handed)}, Replicas: 2}}},
	)
	g.Expect(slots.Unverified(inCluster, stale, Epoch)).To(HaveField("Start", true))
	verify(&slots, stale, Epoch, toGo("a"), coming("n"))
	g.Expect(slots.Unverified(inCluster, stale, Epoch).Any()).To(BeFalse())
	g.Expect(decide(&slots, "d", stale, asking(0, 0, Epoch)).InCluster).To(Equal(2))
	g.Expect(allowed(decide(&slots, "d", stale, asking(1, 9, Epoch, "b")))).To(BeEmpty(), "the cache is behind")
	// The cache shows that it was replaced and that all is well.
	fresh := seen(
		map[types.UID][]remediation.Set{
			"d": {{Machines: []*clusterv1.Machine{Machine("n", replaces("a", wasAvailable)), Machine("b", handed)}, Replicas: 2}},
		},
	)
	g.Expect(allowed(decide(&slots, "d", fresh, asking(1, 9, Epoch, "b")))).To(Equal([]string{"b"}))
}

// TestSlotsAreVerifiedOneByOne: of slots of different age, the set that waits is enqueued when the oldest is overdue, and gets its room
// alone.
func TestSlotsAreVerifiedOneByOne(t *testing.T) {
	const many = 8
	g := NewWithT(t)
	var slots remediation.Slots
	view := remediation.View{}
	verify(&slots, view, Epoch)
	for n := range many {
		name := string(rune('a' + n))
		d := decide(&slots, "d", view, asking(many, many, Epoch.Add(time.Duration(n)*time.Second), name))
		g.Expect(d.InFlight).To(Equal(n + 1))
	}
	for n := range many {
		until := Epoch.Add(remediation.UnseenTimeout + time.Duration(n)*time.Second)
		// The slots are looked through in any order.
		for range 10 {
			left := decide(&slots, "d", view, asking(many-n, many, until.Add(-1), "waiting"))
			g.Expect(left.Next).To(Equal(until))
			g.Expect(left.InFlight).To(Equal(many - n))
		}
		verify(&slots, view, until)
		g.Expect(decide(&slots, "d", view, asking(0, 0, until)).InFlight).To(Equal(many-n-1), "it alone has ended")
	}
}

// TestWhatTheServerConfirmsStays, for as long as it does: it is asked again after UnseenTimeout, and not earlier.
func TestWhatTheServerConfirmsStays(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	view := seen(
		map[types.UID][]remediation.Set{"d": {{Machines: []*clusterv1.Machine{Machine("a", handed), Machine("b", handed)}, Replicas: 2}}},
	)
	verify(&slots, view, Epoch)
	decide(&slots, "d", view, asking(1, 9, Epoch, "a"))
	now := Epoch
	for range 5 {
		now = now.Add(remediation.UnseenTimeout)
		g.Expect(slots.Unverified(inCluster, view, now).Any()).To(BeTrue())
		verify(&slots, view, now, toGo("a"))
		g.Expect(slots.Unverified(inCluster, view, now.Add(remediation.UnseenTimeout-1)).Any()).To(BeFalse())
		d := decide(&slots, "d", view, asking(1, 9, now, "b"))
		g.Expect(allowed(d)).To(BeEmpty())
		g.Expect(d.Next).To(Equal(now.Add(remediation.UnseenTimeout)))
	}
	// It was replaced, and its replacement came and went without the cache showing either.
	now = now.Add(remediation.UnseenTimeout)
	verify(&slots, view, now, coming("n"))
	g.Expect(allowed(decide(&slots, "d", view, asking(1, 9, now, "b")))).To(BeEmpty())
	now = now.Add(remediation.UnseenTimeout)
	verify(&slots, view, now)
	g.Expect(allowed(decide(&slots, "d", view, asking(1, 9, now, "b")))).To(Equal([]string{"b"}))
}
