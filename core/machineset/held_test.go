package machineset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/test/coretest"
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
	reconcile("MaxInFlight", "MaxInFlight", "RetryPeriod")
	g.Expect(recorder.Events).To(Receive(And(HavePrefix("Warning RemediationBlocked "), ContainSubstring("message of MaxInFlight"),
		ContainSubstring("message of RetryPeriod"))))
	reconcile("MaxInFlight", "MaxInFlight", "RetryPeriod")
	reconcile("MaxInFlight")
	g.Expect(recorder.Events).To(BeEmpty())
	reconcile("", "RetryPeriod")
	g.Expect(recorder.Events).To(Receive(ContainSubstring("message of RetryPeriod")))
}

// TestHeldIsOfEachSet: what one set has says nothing of another, in the metric and in events.
func TestHeldIsOfEachSet(t *testing.T) {
	g := NewWithT(t)
	var shown heldSets
	a, b := types.NamespacedName{Namespace: "held-twice", Name: "a"}, types.NamespacedName{Namespace: "held-twice", Name: "b"}
	number := func(set types.NamespacedName) float64 {
		return testutil.ToFloat64(blockedMachines.WithLabelValues(set.Namespace, set.Name, "MaxInFlight"))
	}
	t.Cleanup(func() { blockedMachines.DeletePartialMatch(prometheus.Labels{"namespace": "held-twice"}) })
	g.Expect(shown.set(a, map[string]int{"MaxInFlight": 2}, "")).To(BeTrue())
	g.Expect(shown.set(b, map[string]int{"MaxInFlight": 3}, "")).To(BeTrue())
	g.Expect(shown.set(a, map[string]int{"MaxInFlight": 4}, "")).To(BeFalse(), "it is known")
	g.Expect([]float64{number(a), number(b)}).To(Equal([]float64{4, 3}))
	shown.set(a, nil, "")
	g.Expect([]float64{number(a), number(b)}).To(Equal([]float64{0, 3}))
	shown.set(b, map[string]int{"MaxRetryReached": 1}, "")
	g.Expect(number(b)).To(BeZero(), "a reason that is over is not shown any more")
}

// TestHeldAsWritten: the reason is that of a condition that is False, and what was not written is no event.
func TestHeldAsWritten(t *testing.T) {
	g, recorder := NewWithT(t), events.NewFakeRecorder(10)
	r := &Reconciler{Recorder: recorder, Clock: testingclock.NewFakeClock(time.Now())}
	set := &clusterv1.MachineSet{}
	set.Namespace, set.Name = "held", "unwritten"
	t.Cleanup(func() { forgetHeld(types.NamespacedName{Namespace: "held", Name: "unwritten"}) })
	g.Expect(heldBecause(set)).To(BeEmpty())
	s := r.newScope(set)
	s.held.add("MaxInFlight", "message", 1)
	r.recordHeld(s, "")
	g.Expect(recorder.Events).To(BeEmpty(), "there is no condition to report")
	conditions.Set(&set.Status.Conditions, conditions.True(remediationAllowedConditionType, remediationAllowedReason, ""), 1, s.Now)
	g.Expect(heldBecause(set)).To(BeEmpty())
	conditions.Set(&set.Status.Conditions, conditions.False(remediationAllowedConditionType, "MaxInFlight", "message"), 1, s.Now)
	g.Expect(heldBecause(set)).To(Equal("MaxInFlight"))
}

// TestHeldIsForgotten: a set or a Cluster that is gone leaves nothing in the metrics.
func TestHeldIsForgotten(t *testing.T) {
	g := NewWithT(t)
	key := types.NamespacedName{Namespace: "held-no-more", Name: "s"}
	labels := []string{"namespace", key.Namespace, "machineset", key.Name}
	shownHeld.set(key, map[string]int{"MaxInFlight": 2}, "")
	showRefused(key, 1)
	replacements.WithLabelValues(key.String(), "UnhealthyNode").Inc()
	g.Expect(coretest.Gauge(t, "millwright_remediation_blocked", append(labels, "reason", "MaxInFlight")...)).To(BeEquivalentTo(2))
	g.Expect(coretest.Gauge(t, "millwright_adoptions_refused", labels...)).To(BeEquivalentTo(1))
	g.Expect(coretest.Gauge(t, "millwright_replacements_total", "cluster", key.String(), "reason", "UnhealthyNode")).To(BeEquivalentTo(1))
	forgetHeld(key)
	forgetReplacements(key)
	g.Expect(coretest.Gauge(t, "millwright_remediation_blocked", append(labels, "reason", "MaxInFlight")...)).To(BeEquivalentTo(-1))
	g.Expect(coretest.Gauge(t, "millwright_adoptions_refused", labels...)).To(BeEquivalentTo(-1))
	g.Expect(coretest.Gauge(t, "millwright_replacements_total", "cluster", key.String(), "reason", "UnhealthyNode")).To(BeEquivalentTo(-1))
}
