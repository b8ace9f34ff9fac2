package remediation_test

import (
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
	d := slots.Decide(inCluster, "d", view, asking(3, 9, Epoch, "a", "b"))
	g.Expect(allowed(d)).To(Equal([]string{"a"}), "one goes in another set, one has not come up")
	g.Expect(d.InFlight).To(Equal(3))
	// The cache shows nothing of it yet, and another set asks.
	d = slots.Decide(inCluster, "d", view, asking(3, 9, Epoch, "b"))
	g.Expect(allowed(d)).To(BeEmpty())
	g.Expect(d.Next).To(Equal(Epoch.Add(remediation.UnseenTimeout)), "a slot that nothing confirms expires")
	g.Expect(allowed(slots.Decide(inCluster, "d", view, asking(3, 9, Epoch, "a", "b")))).To(Equal([]string{"a"}), "who has a slot keeps it")
	// Another deployment has a limit of its own, and shares that of the Cluster.
	g.Expect(allowed(slots.Decide(inCluster, "other", view, asking(3, 4, Epoch, "e", "f")))).To(Equal([]string{"e"}))
	// What the cache shows is counted once.
	recorded := set(Machine("a", handed), Machine("b", handed), Machine("new", replaces("x", wasAvailable)))
	recorded.Records = []remediation.Record{{Machine: "a"}}
	view = seen(map[types.UID][]remediation.Set{"d": {set(Machine("old", begun, Deleting)), recorded}})
	d = slots.Decide(inCluster, "d", view, asking(3, 9, Epoch, "b"))
	g.Expect(allowed(d)).To(Equal([]string{"b"}), "new is available")
}

func TestSlotsEnd(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	view := seen(map[types.UID][]remediation.Set{"d": {{Machines: []*clusterv1.Machine{Machine("a", handed), Machine("b", handed)}, Replicas: 2}}})
	ask := func(now time.Time, name string) []string {
		return allowed(slots.Decide(inCluster, "d", view, asking(1, 9, now, name)))
	}
	g.Expect(ask(Epoch, "a")).To(HaveLen(1))
	g.Expect(ask(Epoch, "b")).To(BeEmpty())
	slots.Release(inCluster, "d", "a")
	g.Expect(ask(Epoch, "b")).To(HaveLen(1), "given back")
	g.Expect(ask(Epoch.Add(remediation.UnseenTimeout-1), "a")).To(BeEmpty())
	g.Expect(ask(Epoch.Add(remediation.UnseenTimeout), "a")).To(HaveLen(1), "nothing ever came of it")
	slots.Forget(inCluster)
	g.Expect(ask(Epoch, "b")).To(HaveLen(1))
}

// TestSlotsLastFromTheLastAttempt: an attempt whose answer was lost is repeated, and the cache gets all the time to show the second one.
func TestSlotsLastFromTheLastAttempt(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	view := seen(map[types.UID][]remediation.Set{"d": {{Machines: []*clusterv1.Machine{Machine("a", handed), Machine("b", handed)}, Replicas: 2}}})
	ask := func(after time.Duration, name string) []string {
		return allowed(slots.Decide(inCluster, "d", view, asking(1, 9, Epoch.Add(after), name)))
	}
	g.Expect(ask(0, "a")).To(HaveLen(1))
	g.Expect(ask(remediation.UnseenTimeout-1, "a")).To(HaveLen(1), "it is its own place")
	g.Expect(ask(remediation.UnseenTimeout, "b")).To(BeEmpty(), "a may have been recorded a moment ago")
	g.Expect(ask(2*remediation.UnseenTimeout-1, "b")).To(HaveLen(1))
}

// TestOnDeleteOwesWhatTheDeploymentWants: between the moment at which an outdated set is told that it has lost a Machine for good, and
// that at which another one is told to make up for it, the place stays taken.
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
	stale := seen(map[types.UID][]remediation.Set{"d": {{Machines: []*clusterv1.Machine{Machine("a", handed), Machine("b", handed)}, Replicas: 2}}})
	g.Expect(slots.Verified(inCluster)).To(BeFalse())
	slots.Verify(inCluster, []remediation.Slot{{Group: "d", Machine: "a"}}, stale, Epoch)
	g.Expect(slots.Verified(inCluster)).To(BeTrue())
	g.Expect(allowed(slots.Decide(inCluster, "d", stale, asking(1, 9, Epoch, "b")))).To(BeEmpty(), "the cache is behind")
	// The cache shows that it was replaced and that all is well.
	fresh := seen(map[types.UID][]remediation.Set{"d": {{Machines: []*clusterv1.Machine{Machine("n", replaces("a", wasAvailable)), Machine("b", handed)}, Replicas: 2}}})
	g.Expect(allowed(slots.Decide(inCluster, "d", fresh, asking(1, 9, Epoch, "b")))).To(Equal([]string{"b"}))
}

// TestSlotsExpireOneByOne: of slots of different age, whoever waits is woken when the oldest expires, and gets its room
// alone.
func TestSlotsExpireOneByOne(t *testing.T) {
	const many = 8
	g := NewWithT(t)
	var slots remediation.Slots
	var names []string
	for n := range many {
		names = append(names, string(rune('a'+n)))
	}
	view := remediation.View{}
	for n, name := range names {
		d := slots.Decide(inCluster, "d", view, asking(many, many, Epoch.Add(time.Duration(n)*time.Second), name))
		g.Expect(d.InFlight).To(Equal(n + 1))
	}
	for n := range many {
		until := Epoch.Add(remediation.UnseenTimeout + time.Duration(n)*time.Second)
		// The slots are looked through in any order.
		for range 10 {
			left := slots.Decide(inCluster, "d", view, asking(many-n, many, until.Add(-1), "waiting"))
			g.Expect(left.Next).To(Equal(until))
			g.Expect(left.InFlight).To(Equal(many - n))
		}
		g.Expect(slots.Decide(inCluster, "d", view, asking(0, 0, until)).InFlight).To(Equal(many-n-1), "it alone has expired")
	}
}
