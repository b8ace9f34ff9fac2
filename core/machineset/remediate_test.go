package machineset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
	. "millwright.dev/test/coretest/builder"
)

// handed makes a Machine one that a health check has found unhealthy and handed to its owner.
func handed(m *clusterv1.Machine) {
	Unhealthy(m)
	SetConditions(m, conditions.False(clusterv1.MachineOwnerRemediatedCondition, "WaitingForRemediation", ""))
}

// remediating makes it one whose remediation has begun.
func remediating(m *clusterv1.Machine) {
	handed(m)
	SetConditions(m, remediationBegun())
}

func demandedByUser(m *clusterv1.Machine) {
	m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
}

func TestToRemediate(t *testing.T) {
	g := NewWithT(t)
	well := Machine("well", handed)
	SetConditions(well, conditions.True(clusterv1.MachineHealthCheckSucceededCondition, "HealthCheckSucceeded", ""))
	all := []*clusterv1.Machine{
		Machine("old", handed, Aged(2*time.Hour)), Machine("young", handed), Machine("young-too", handed),
		Machine("begun", remediating, Aged(time.Hour)), Machine("wanted", handed, demandedByUser, Aged(3*time.Hour)),
		Machine("fine"), Machine("only-unhealthy", Unhealthy), well, Machine("going", remediating, Deleting),
	}
	g.Expect(Names(toRemediate(all))).To(Equal("begun wanted young young-too old"))
	g.Expect(Names(recovered(append(all, Machine("well-going", handed, Deleting))))).To(Equal("well"))
	g.Expect(Names(machines.Remediated(all))).To(ContainSubstring("going"))
}

func TestRemediationLimit(t *testing.T) {
	deployment := func(replicas *int32, limit *intstr.IntOrString) *clusterv1.MachineDeployment {
		d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
		d.Spec.Replicas, d.Spec.Remediation.MaxInFlight = replicas, limit
		return d
	}
	tests := map[string]struct {
		deployment *clusterv1.MachineDeployment
		want       int
		problem    string
	}{
		"standalone":             {nil, unlimited, ""},
		"not set":                {deployment(ptr.To[int32](5), nil), unlimited, ""},
		"a number":               {deployment(ptr.To[int32](5), ptr.To(intstr.FromInt32(2))), 2, ""},
		"none":                   {deployment(ptr.To[int32](5), ptr.To(intstr.FromInt32(0))), 0, ""},
		"rounded up":             {deployment(ptr.To[int32](5), ptr.To(intstr.FromString("21%"))), 2, ""},
		"of few":                 {deployment(ptr.To[int32](1), ptr.To(intstr.FromString("1%"))), 1, ""},
		"of the default":         {deployment(nil, ptr.To(intstr.FromString("100%"))), 1, ""},
		"neither of them, wrong": {deployment(ptr.To[int32](5), ptr.To(intstr.FromString("few"))), 0, "spec.remediation.maxInFlight \"few\""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			limit, problem := remediationLimit(test.deployment)
			g.Expect(limit).To(Equal(test.want))
			if test.problem == "" {
				g.Expect(problem).To(BeEmpty())
			} else {
				g.Expect(problem).To(And(ContainSubstring(test.problem), ContainSubstring("correct it")))
			}
		})
	}
}

func TestOfCurrentRevision(t *testing.T) {
	at := func(deployment, set string, outdated ...string) *scope {
		s := begin(validSet())
		s.deployment, s.outdated = &clusterv1.MachineDeployment{}, outdated
		for object, revision := range map[metav1.Object]string{s.Object: set, s.deployment: deployment} {
			if revision != "" {
				object.SetAnnotations(map[string]string{clusterv1.RevisionAnnotation: revision})
			}
		}
		return s
	}
	g := NewWithT(t)
	g.Expect(ofCurrentRevision(begin(validSet()))).To(BeTrue(), "standalone")
	g.Expect(ofCurrentRevision(at("2", "2"))).To(BeTrue())
	g.Expect(ofCurrentRevision(at("2", "1"))).To(BeFalse())
	g.Expect(ofCurrentRevision(at("2", "2", "version"))).To(BeTrue(), "the deployment is paused, and its revision stays")
	g.Expect(ofCurrentRevision(at("", "2"))).To(BeTrue())
	g.Expect(ofCurrentRevision(at("", "", "version"))).To(BeFalse(), "there are no revisions yet")
}

// TestSlotsCountTheWholeDeployment shows what a count per MachineSet gets wrong: the remediations of an earlier
// revision's set take up room as well.
func TestSlotsCountTheWholeDeployment(t *testing.T) {
	g := NewWithT(t)
	var t1 remediationSlots
	old := Machine("old", remediating, Deleting)
	a, b := Machine("a", handed), Machine("b", handed)
	known := []*clusterv1.Machine{old, a, b}
	granted := t1.take("d", 2, known, []*clusterv1.Machine{a, b}, Epoch)
	g.Expect(Names(granted.machines)).To(Equal("a"), "one is in flight in another set")
	g.Expect(granted.busy).To(Equal(2))

	// The cache shows nothing of it yet, and another set asks.
	granted = t1.take("d", 2, known, []*clusterv1.Machine{b}, Epoch)
	g.Expect(granted.machines).To(BeEmpty())
	g.Expect(granted.until).To(Equal(Epoch.Add(unseenTimeout)))
	g.Expect(Names(t1.take("d", 2, known, []*clusterv1.Machine{a, b}, Epoch).machines)).To(Equal("a"), "who has a slot keeps it")
	g.Expect(Names(t1.take("other", 2, nil, []*clusterv1.Machine{b}, Epoch).machines)).To(Equal("b"), "deployments do not count for one another")

	// Now it does: the slot is replaced by the Machine itself.
	a = Machine("a", remediating, Deleting)
	granted = t1.take("d", 2, []*clusterv1.Machine{old, a, b}, []*clusterv1.Machine{b}, Epoch)
	g.Expect(granted.machines).To(BeEmpty())
	g.Expect(granted.until).To(BeZero())

	// The other set's Machine is gone.
	g.Expect(Names(t1.take("d", 2, []*clusterv1.Machine{a, b}, []*clusterv1.Machine{b}, Epoch).machines)).To(Equal("b"))
}

func TestSlotsEnd(t *testing.T) {
	g := NewWithT(t)
	var t1 remediationSlots
	a, b := Machine("a", handed), Machine("b", handed)
	both := []*clusterv1.Machine{a, b}
	room := func(known []*clusterv1.Machine, now time.Time) int {
		return 1 - t1.take("d", 0, known, nil, now).busy
	}
	t1.take("d", 1, both, []*clusterv1.Machine{a}, Epoch)
	g.Expect(room(both, Epoch)).To(Equal(0))
	t1.release("d", a.UID)
	g.Expect(room(both, Epoch)).To(Equal(1), "given back")

	t1.take("d", 1, both, []*clusterv1.Machine{a}, Epoch)
	g.Expect(room(both, Epoch.Add(unseenTimeout-1))).To(Equal(0))
	g.Expect(room(both, Epoch.Add(unseenTimeout))).To(Equal(1), "nothing ever came of it")

	t1.take("d", 1, both, []*clusterv1.Machine{a}, Epoch)
	g.Expect(room([]*clusterv1.Machine{b}, Epoch)).To(Equal(1), "the Machine is gone")

	t1.take("d", 1, both, []*clusterv1.Machine{a}, Epoch)
	g.Expect(room([]*clusterv1.Machine{Machine("a", handed, Deleting), b}, Epoch)).To(Equal(1), "it goes for another reason")
}

func TestSlotsAfterARestart(t *testing.T) {
	g := NewWithT(t)
	var t1 remediationSlots
	a, b := Machine("a", remediating), Machine("b", handed)
	known := []*clusterv1.Machine{a, b}
	g.Expect(t1.verified("d")).To(BeFalse())
	going := metav1.PartialObjectMetadata{ObjectMeta: Machine("a", Deleting).ObjectMeta}
	unseen := metav1.PartialObjectMetadata{ObjectMeta: Machine("x", Deleting).ObjectMeta}
	t1.verify("d", []metav1.PartialObjectMetadata{going, unseen, {ObjectMeta: b.ObjectMeta}}, known, Epoch)
	g.Expect(t1.verified("d")).To(BeTrue())
	g.Expect(t1.take("d", 2, known, []*clusterv1.Machine{b}, Epoch).machines).To(BeEmpty(), "the cache is behind")
	g.Expect(Names(t1.take("d", 2, []*clusterv1.Machine{Machine("a", remediating, Deleting), Machine("x", Deleting), b},
		[]*clusterv1.Machine{b}, Epoch).machines)).To(Equal("b"), "x is no remediation")
	t1.forget("d")
	g.Expect(t1.verified("d")).To(BeFalse())
}

func TestWaitList(t *testing.T) {
	g := NewWithT(t)
	var w waitList
	set := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	for _, name := range []string{"a", "b", "c"} {
		w.await(set(name), "one")
	}
	w.await(set("b"), "other")
	w.content(set("c"))
	g.Expect(w.wake("one")).To(ConsistOf(HaveField("Name", "a")))
	g.Expect(w.wake("one")).To(BeEmpty(), "nobody is woken twice for one wait")
	g.Expect(w.wake("other")).To(ConsistOf(HaveField("Name", "b")))
}

// TestOnlyTheEndOfARemediationWakes: a rollout of a thousand Machines beside it wakes nobody.
func TestOnlyTheEndOfARemediationWakes(t *testing.T) {
	g := NewWithT(t)
	var r Reconciler
	ending := func(namespace string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
		m := Machine("m", change...)
		m.Namespace = namespace
		return m
	}
	r.forSlots.await(types.NamespacedName{Namespace: "ns", Name: "s"}, "ns")
	g.Expect(r.waitingForSlots(ending("ns", Deleting), false)).To(BeEmpty(), "scaled down")
	g.Expect(r.waitingForSlots(ending("other", remediating, Deleting), false)).To(BeEmpty(), "elsewhere")
	g.Expect(r.waitingForSlots(ending("ns", remediating, Deleting), false)).To(HaveLen(1))
	g.Expect(r.waitingForSlots(ending("ns", remediating, Deleting), false)).To(BeEmpty(), "it is awake")
	r.forSlots.await(types.NamespacedName{Namespace: "ns", Name: "s"}, "ns")
	g.Expect(r.waitingForSlots(ending("ns"), true)).To(HaveLen(1), "nobody knows what the Machine was at its end")
}

func TestPlanCountsRemediationsInFlight(t *testing.T) {
	g := NewWithT(t)
	reported := func(status metav1.ConditionStatus, reason string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			SetConditions(m, metav1.Condition{Type: clusterv1.MachineOwnerRemediatedCondition, Status: status, Reason: reason})
		}
	}
	begun := reported(metav1.ConditionFalse, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	g.Expect(inFlight(Machine("a", Deleting, begun))).To(BeTrue())
	g.Expect(inFlight(Machine("a", begun))).To(BeFalse(), "it lives")
	g.Expect(inFlight(Machine("a", Deleting))).To(BeFalse(), "it goes for another reason")
	g.Expect(inFlight(Machine("a", Deleting, reported(metav1.ConditionTrue, clusterv1.MachineSetMachineRemediationMachineDeletingReason)))).To(BeFalse())
	g.Expect(inFlight(Machine("a", Deleting, reported(metav1.ConditionFalse, clusterv1.MachineSetMachineRemediationDeferredReason)))).To(BeFalse())
}
