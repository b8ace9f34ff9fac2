package machineset

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
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
	s := begin(validSet())
	s.machines = all
	g.Expect(Names(remediation.Due(s.Object, s.machines))).To(Equal("begun wanted young young-too old"))
	s.Object.Annotations = map[string]string{
		remediation.ReplacingAnnotation: remediation.FormatRecords([]remediation.Record{{Machine: "old"}}),
	}
	g.Expect(Names(remediation.Due(s.Object, s.machines))).To(Equal("begun old wanted young young-too"), "what is recorded has begun")
	g.Expect(Names(recovered(append(all, Machine("well-going", handed, Deleting))))).To(Equal("well"))
	g.Expect(Names(machines.Remediated(all))).To(ContainSubstring("going"))
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

func TestWaitList(t *testing.T) {
	g := NewWithT(t)
	var w waitList
	set := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	for _, name := range []string{"a", "b", "c"} {
		w.await(set(name), "one")
	}
	w.await(set("b"), "other")
	w.remove(set("c"))
	g.Expect(w.wake("one")).To(ConsistOf(HaveField("Name", "a")))
	g.Expect(w.wake("one")).To(BeEmpty(), "nothing is woken twice for one wait")
	g.Expect(w.wake("other")).To(ConsistOf(HaveField("Name", "b")))
}

// TestOnlyWhatMakesRoomWakes: a rollout of a thousand Machines beside it enqueues nothing.
func TestOnlyWhatMakesRoomWakes(t *testing.T) {
	g := NewWithT(t)
	var r Reconciler
	is := func(namespace string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
		m := Machine("m", change...)
		m.Namespace = namespace
		return m
	}
	wait := func() { r.forSlots.await(types.NamespacedName{Namespace: "ns", Name: "s"}, "ns") }
	wait()
	g.Expect(r.waitingForSlots(is("ns", Deleting), nil, false)).To(BeEmpty(), "scaled down")
	g.Expect(r.waitingForSlots(is("other", remediating, Deleting), nil, false)).To(BeEmpty(), "elsewhere")
	g.Expect(r.waitingForSlots(is("ns", remediating), is("ns", remediating, Deleting), false)).To(BeEmpty(), "it has only begun")
	g.Expect(r.waitingForSlots(is("ns"), is("ns", handed), false)).To(BeEmpty(), "another one that waits makes no room")
	g.Expect(r.waitingForSlots(is("ns", remediating, Deleting), nil, false)).To(HaveLen(1))
	g.Expect(r.waitingForSlots(is("ns", remediating, Deleting), nil, false)).To(BeEmpty(), "it is awake")
	wait()
	g.Expect(r.waitingForSlots(is("ns", replacing("x", 0), Unavailable), is("ns"), false)).
		To(HaveLen(1), "it is no replacement that is awaited any more")
	wait()
	g.Expect(r.waitingForSlots(is("ns", handed), is("ns"), false)).To(HaveLen(1), "fewer are unhealthy")
	wait()
	g.Expect(r.waitingForSlots(is("ns"), nil, true)).To(HaveLen(1), "the last state of the Machine is unknown")
	wait()
	well := func(m *clusterv1.Machine) {
		SetConditions(m, conditions.True(clusterv1.MachineHealthCheckSucceededCondition, "HealthCheckSucceeded", ""))
	}
	g.Expect(r.waitingForSlots(is("ns", remediating, well, Deleting), nil, false)).To(HaveLen(1), "it was healthy again before its end")
	wait()
	g.Expect(r.waitingForSlots(&clusterv1.MachineSet{}, nil, true)).To(BeEmpty(), "no Machine")
}

// TestAllThatMakesRoomWakes: whatever change of a Machine ends a place that is held, or leaves fewer unhealthy, wakes those that wait,
// also when the Machine then counts for something else.
func TestAllThatMakesRoomWakes(t *testing.T) {
	changes := []func(*clusterv1.Machine){Deleting, handed, remediating, replacing("x", 0)}
	var states []*clusterv1.Machine
	for mask := range 1 << len(changes) {
		m := Machine("m")
		m.Namespace = "ns"
		for i, change := range changes {
			if mask&(1<<i) != 0 {
				change(m)
			}
		}
		states = append(states, m)
	}
	counts := func(m *clusterv1.Machine) (held, unhealthy int) {
		set := validSet()
		view := remediation.ViewOf([]remediation.Owned{{MachineSet: set, Machines: []*clusterv1.Machine{m}}}, nil)
		return len(view.Flights[remediation.GroupOf(set)].Held), view.Unhealthy
	}
	for _, before := range states {
		for _, after := range states {
			var r Reconciler
			r.forSlots.await(types.NamespacedName{Namespace: "ns", Name: "s"}, "ns")
			held, unhealthy := counts(before)
			heldAfter, unhealthyAfter := counts(after)
			if heldAfter < held || unhealthyAfter < unhealthy {
				NewWithT(t).Expect(r.waitingForSlots(before, after, false)).To(HaveLen(1), "%s -> %s", describe(before), describe(after))
			}
		}
	}
}

func describe(m *clusterv1.Machine) string {
	return fmt.Sprintf("deleting %t, unhealthy %t, leaving %t, coming %t",
		!m.DeletionTimestamp.IsZero(), machines.FailedHealthCheck(m), remediation.Leaving(m), remediation.Coming(m))
}

// replacing makes a Machine one that replaces another.
func replacing(name string, retry int) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		record := remediation.Record{Machine: name, Since: Epoch, Retry: retry}
		m.Annotations = map[string]string{remediation.ReplacesAnnotation: record.String()}
	}
}

// TestTemplatesMakeNoReplacements: what the core records of a replacement does not come from a template, and a template cannot
// make retries continue for ever.
func TestTemplatesMakeNoReplacements(t *testing.T) {
	g := NewWithT(t)
	set := validSet()
	set.Spec.Template.Annotations = map[string]string{
		remediation.ReplacesAnnotation: remediation.Record{Machine: "x"}.String(), clusterv1.RemediateMachineAnnotation: "",
	}
	machine := desiredMachine(set, "m")
	g.Expect(machine.Annotations).NotTo(HaveKey(remediation.ReplacesAnnotation))
	s := begin(set)
	g.Expect(remediation.Demanded(s.Object, machine)).To(BeFalse())
	s = begin(validSet())
	g.Expect(remediation.Demanded(s.Object, machine)).To(BeTrue())
}

// TestHeld: the condition has the reason that most have, with numbers, and all messages.
func TestHeld(t *testing.T) {
	g := NewWithT(t)
	s := begin(validSet())
	s.machinesRead = true
	g.Expect(remediationAllowedCondition(s, nil).Status).To(Equal(metav1.ConditionTrue))
	s.held.add("MaxInFlight", "Waits", 2)
	s.held.add("MaxRetryReached", "b: failed", 1)
	s.held.add("MaxRetryReached", "a: failed", 2)
	s.held.numbers = "5 unhealthy"
	found := remediationAllowedCondition(s, nil)
	g.Expect(found.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(found.Reason).To(Equal("MaxRetryReached"))
	g.Expect(found.Message).To(Equal("5 unhealthy\n* 2 Machines: Waits\n* 3 Machines: a: failed"))
	s.held.add("MaxInFlight", "Waits for long", 2)
	found = remediationAllowedCondition(s, nil)
	g.Expect(found.Reason).To(Equal("MaxInFlight"), "4 of 7, though not the last by name")
	g.Expect(found.Message).To(ContainSubstring("4 Machines: Waits\n"), "the first in order, not the last that was added")
	s.held.numbers = ""
	g.Expect(remediationAllowedCondition(s, nil).Message).To(HavePrefix("* 4 Machines"))
	s.machinesRead = false
	g.Expect(remediationAllowedCondition(s, errors.New("no answer")).Status).To(Equal(metav1.ConditionUnknown), "what was found before is old")
	var reasons boundedReasons
	for n := range maxReasons {
		reason := string(rune('A' + n))
		g.Expect(reasons.of(reason)).To(Equal(reason))
	}
	g.Expect(reasons.of("A")).To(Equal("A"))
	g.Expect(reasons.of("new")).To(Equal("other"), "others write conditions")
}
