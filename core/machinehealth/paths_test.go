package machinehealth_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// TestAnUnhealthyMachineIsHandedOver: one of three Nodes is not Ready for longer than its timeout, which no event ends; the Machine
// says so, with one event, and its owner is asked. The MachineHealthCheck has the numbers, the owner and the label.
func TestAnUnhealthyMachineIsHandedOver(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "True")
	w.machine("b", "True")
	w.machine("c", "")
	w.machine("other", "False", func(m *clusterv1.Machine) { m.Labels["pool"] = "b" })
	w.start()
	w.check("workers")
	w.becomes("a", succeeded, well)
	w.becomes("b", succeeded, well)
	w.counts("workers", 3, 2, 2, "True/RemediationAllowed")
	w.reports("b", "False", 0)
	w.becomes("b", succeeded, ill)
	w.becomes("b", owner, waiting)
	w.counts("workers", 3, 1, 1, "True/RemediationAllowed")
	unhealthy := func() float64 {
		return coretest.Gauge(t, "millwright_machines_unhealthy", "cluster", w.Namespace+"/"+workers.ClusterName, "reason", "UnhealthyNode")
	}
	w.G.Eventually(unhealthy).Should(BeEquivalentTo(1))
	w.G.Expect(w.conditionOf("a", succeeded)).To(Equal(well))
	w.G.Expect(w.conditionOf("c", succeeded)).To(BeEmpty(), "it waits for its Node")
	w.G.Expect(w.conditionOf("other", succeeded)).To(BeEmpty(), "nothing selects it")

	check := w.current("workers")
	w.G.Expect(check.Status.Targets).To(Equal([]string{"a", "b", "c"}))
	w.G.Expect(check.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, workers.ClusterName))
	w.G.Expect(check.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "Cluster"), HaveField("Name", workers.ClusterName))))
	w.G.Expect(check.GetV1Beta1Conditions()).To(ContainElement(HaveField("Type", BeEquivalentTo("RemediationAllowed"))))
	w.G.Expect(<-w.events.Events).
		To(And(ContainSubstring("Warning MachineMarkedUnhealthy UnhealthyNode"),
			ContainSubstring("MachineHealthCheck workers: Condition Ready of Node")))

	// The same again says nothing new.
	rounds := w.rounds.Load()
	change(
		w,
		&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "c"}},
		func(m *clusterv1.Machine) { m.Labels["x"] = "y" },
	)
	w.G.Eventually(w.rounds.Load).Should(BeNumerically(">", rounds))
	w.G.Expect(w.events.Events).To(BeEmpty())
	w.reports("b", "True", 0)
	w.becomes("b", succeeded, well)
	w.G.Eventually(unhealthy).Should(BeEquivalentTo(-1))
}

// TestANodeThatIsGone: its Machine is unhealthy at once, since this process has seen the Node.
func TestANodeThatIsGone(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "True")
	w.start()
	w.check("workers")
	w.becomes("a", succeeded, well)
	w.G.Expect(direct.Delete(w.Ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.nodeName("a")}})).To(Succeed())
	w.becomes("a", succeeded, "False/NodeDeleted")
	w.becomes("a", owner, waiting)
}

// TestTooManyUnhealthy: above the limit no Machine is marked for remediation, and one that was and has not been begun is unmarked, and that
// is reported with the numbers and one event.
func TestTooManyUnhealthy(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.machine(name, "True")
	}
	w.start()
	w.check("workers", func(c *clusterv1.MachineHealthCheck) {
		c.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromString("40%"))
	})
	w.counts("workers", 3, 3, 1, "True/RemediationAllowed")
	w.reports("a", "False", 0)
	w.becomes("a", owner, waiting)
	w.reports("b", "False", 0)
	w.counts("workers", 3, 1, 0, "False/TooManyUnhealthy")
	w.becomes("b", succeeded, ill)
	w.becomes("a", owner, "")
	w.G.Expect(w.conditionOf("b", owner)).To(BeEmpty())
	w.G.Expect(meta.FindStatusCondition(w.current("workers").Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition).
		Message).
		To(ContainSubstring("2 of 3 Machines"))
	w.reports("c", "False", 0)
	w.counts("workers", 3, 0, 0, "False/TooManyUnhealthy")
	w.G.Expect(w.recorded("RemediationRestricted")).To(Equal(1))
	w.reports("b", "True", 0)
	w.reports("c", "True", 0)
	w.becomes("a", owner, waiting)
	w.counts("workers", 3, 2, 0, "True/RemediationAllowed")
}

// recorded counts the events so far with that text, and drops all.
func (w *world) recorded(text string) int {
	number := 0
	for {
		select {
		case e := <-w.events.Events:
			if ok, _ := ContainSubstring(text).Match(e); ok {
				number++
			}
		default:
			return number
		}
	}
}

// TestAnOwnerThatHasBegunIsNotInterrupted: what it says stays, above the limit and for a Machine that is being deleted.
func TestAnOwnerThatHasBegunIsNotInterrupted(t *testing.T) {
	w := newWorld(t)
	const begun = clusterv1.MachineSetMachineRemediationMachineDeletingReason
	w.machine("a", "True")
	w.machine("b", "True")
	w.start()
	w.check("workers", func(c *clusterv1.MachineHealthCheck) {
		c.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromInt32(1))
	})
	w.becomes("a", succeeded, well)
	w.reports("a", "False", 0)
	w.becomes("a", owner, waiting)
	w.status("a", func(s *clusterv1.MachineStatus) { meta.FindStatusCondition(s.Conditions, owner).Reason = begun })
	w.reports("b", "False", 0)
	w.counts("workers", 2, 0, 0, "False/TooManyUnhealthy")
	w.becomes("b", succeeded, ill)
	w.G.Expect(w.conditionOf("a", owner)).To(Equal("False/" + begun))
}

// TestTwoHealthChecksOfOneMachine agree: unhealthy by one is unhealthy, the message says by which, and neither undoes the other.
func TestTwoHealthChecksOfOneMachine(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "True")
	w.start()
	strict := w.check("strict")
	w.check("lenient", func(c *clusterv1.MachineHealthCheck) {
		c.Spec.Checks.UnhealthyNodeConditions[0].TimeoutSeconds = ptr.To[int32](3600)
	})
	w.becomes("a", succeeded, well)
	w.counts("lenient", 1, 1, 1, "True/RemediationAllowed")
	w.counts("strict", 1, 1, 1, "True/RemediationAllowed")
	w.reports("a", "False", 0)
	w.becomes("a", succeeded, ill)
	w.counts("strict", 1, 0, 0, "True/RemediationAllowed")
	w.counts("lenient", 1, 0, 0, "True/RemediationAllowed")
	m := &clusterv1.Machine{}
	w.G.Expect(direct.Get(w.Ctx, w.key("a"), m)).To(Succeed())
	message := meta.FindStatusCondition(m.Status.Conditions, succeeded).Message
	w.G.Expect(message).To(And(HavePrefix("MachineHealthCheck strict: "), Not(ContainSubstring("lenient"))))
	w.atRest()

	// Without the strict one the lenient decides, for which it is early.
	w.G.Expect(direct.Delete(w.Ctx, strict)).To(Succeed())
	w.reports("a", "True", 0)
	w.becomes("a", succeeded, well)
}

// atRest checks that a round, when something else wakes it, writes nothing.
func (w *world) atRest() {
	w.t.Helper()
	for range 10 { // On a computer that is busy what was on its way may take some rounds.
		writes, rounds := w.writes.Load(), w.rounds.Load()
		other := w.machine("poke-"+time.Now().Format("150405.000000"), "", func(m *clusterv1.Machine) { m.Labels["pool"] = "none" })
		w.G.Eventually(w.rounds.Load).WithTimeout(workers.Timeout).Should(BeNumerically(">", rounds))
		w.G.Expect(direct.Delete(w.Ctx, other)).To(Succeed())
		if writes == w.writes.Load() {
			return
		}
	}
	w.t.Error("it writes although nothing changes")
}

// TestAMachineThatNothingSelectsAnyMore says nothing about its health: because its labels, the MachineHealthCheck, or an annotation
// have changed, and also if that was while no core ran. What another has written to it stays.
func TestAMachineThatNothingSelectsAnyMore(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.machine(name, "False")
	}
	w.machine("foreign", "True", func(m *clusterv1.Machine) { m.Labels["pool"] = "b" })
	w.status("foreign", func(s *clusterv1.MachineStatus) {
		for _, kind := range []string{succeeded, owner} {
			s.Conditions = append(
				s.Conditions,
				metav1.Condition{Type: kind, Status: "False", Reason: "ByHand", Message: "by hand", LastTransitionTime: metav1.Now()},
			)
		}
	})
	w.start()
	first := w.check("workers")
	for _, name := range []string{"a", "b", "c", "d"} {
		w.becomes(name, owner, waiting)
	}
	machine := func(name string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	}
	change(w, machine("a"), func(m *clusterv1.Machine) { m.Labels["pool"] = "b" })
	change(w, machine("b"), func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{clusterv1.MachineSkipRemediationAnnotation: ""}
	})
	for _, name := range []string{"a", "b"} {
		w.becomes(name, succeeded, "")
		w.becomes(name, owner, "")
	}
	w.counts("workers", 2, 0, 0, "True/RemediationAllowed")
	change(w, machine("c"), func(m *clusterv1.Machine) { m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })
	w.counts("workers", 1, 0, 0, "True/RemediationAllowed")

	w.Stop()
	w.G.Expect(direct.Delete(w.Ctx, first)).To(Succeed())
	w.start()
	w.becomes("d", succeeded, "")
	w.becomes("d", owner, "")
	w.G.Expect(w.conditionOf("c", succeeded)).To(Equal(ill), "a paused Machine is left alone")
	w.G.Expect(w.conditionOf("foreign", succeeded)).To(Equal("False/ByHand"))
	w.G.Expect(w.conditionOf("foreign", owner)).To(Equal("False/ByHand"))
}

// TestAPreservedMachineKeepsWhatWasFound: the user who inspects it wants to know why it failed. Its owner is asked no more.
func TestAPreservedMachineKeepsWhatWasFound(t *testing.T) {
	w := newWorld(t)
	w.machine("failed", "False")
	w.machine("well", "True")
	w.machine("skipped", "False")
	w.start()
	w.check("workers")
	w.becomes("failed", owner, waiting)
	w.becomes("skipped", owner, waiting)
	w.becomes("well", succeeded, "True/HealthCheckSucceeded")
	for _, name := range []string{"failed", "well", "skipped"} {
		change(w, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}, func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{clusterv1.MachineSkipRemediationAnnotation: ""}
			if name != "skipped" {
				// As machines.Preserve does.
				delete(m.Labels, "pool")
				m.Labels[machines.PreservedLabel] = "d"
			}
		})
	}
	w.becomes("failed", owner, "")
	w.becomes("skipped", succeeded, "")
	w.becomes("well", succeeded, "")
	w.G.Expect(w.conditionOf("failed", succeeded)).To(Equal(ill))
}
