package machineset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// TestHeldReasonsAreNewOnce: a reason that few Machines have is an event as well, and none because another one has more Machines now.
func TestHeldReasonsAreNewOnce(t *testing.T) {
	g := NewWithT(t)
	var shown heldSets
	key := types.NamespacedName{Namespace: "held", Name: "s"}
	for i, step := range []struct {
		counts map[string]int
		before string
		fresh  bool
	}{
		{map[string]int{"MaxInFlight": 5}, "MaxInFlight", false}, // the process is new, the condition is not
		{map[string]int{"MaxInFlight": 5, "MaxRetryReached": 1}, "MaxInFlight", true},
		{map[string]int{"MaxInFlight": 1, "MaxRetryReached": 5}, "MaxInFlight", false},
		{map[string]int{"MaxInFlight": 5, "MaxRetryReached": 1}, "MaxRetryReached", false},
		{nil, "MaxInFlight", false},
		{map[string]int{"MaxInFlight": 1}, "", true},
		{nil, "MaxInFlight", false},
	} {
		g.Expect(shown.set(key, step.counts, step.before)).To(Equal(step.fresh), "%d", i)
	}
	g.Expect(shown.sets).To(BeEmpty())
}

// TestAReasonThatHoldsUpReplacementsIsAnEvent: once for each, with the text of the condition as it was written; none for what the condition
// had before the core began, and none when nothing is held up.
func TestAReasonThatHoldsUpReplacementsIsAnEvent(t *testing.T) {
	g, recorder := NewWithT(t), events.NewFakeRecorder(10)
	r := &Reconciler{Recorder: recorder, Clock: testingclock.NewFakeClock(time.Now())}
	set := &clusterv1.MachineSet{}
	set.Namespace, set.Name = "held", "recorded"
	t.Cleanup(func() { forgetHeld(types.NamespacedName{Namespace: "held", Name: "recorded"}) })
	reconcile := func(before string, blocked ...string) {
		s := r.newScope(set)
		s.machinesRead = true
		for _, reason := range blocked {
			s.held.add(reason, "message of "+reason, 1)
		}
		conditions.Set(&set.Status.Conditions, remediationAllowedCondition(s, nil), 1, s.Now)
		s.Object.Status = set.Status
		r.recordHeld(s, before)
	}
	reconcile("MaxInFlight", "MaxInFlight")
	g.Expect(recorder.Events).To(BeEmpty(), "the condition of the process before had it")
	reconcile("MaxInFlight", "MaxInFlight", "NotConfirmed")
	g.Expect(recorder.Events).To(Receive(And(HavePrefix("Warning RemediationBlocked "), ContainSubstring("message of MaxInFlight"),
		ContainSubstring("message of NotConfirmed"))))
	reconcile("MaxInFlight", "MaxInFlight", "NotConfirmed")
	reconcile("MaxInFlight")
	g.Expect(recorder.Events).To(BeEmpty())
	reconcile("", "NotConfirmed")
	g.Expect(recorder.Events).To(Receive(ContainSubstring("message of NotConfirmed")))
}
