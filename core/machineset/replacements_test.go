package machineset

import (
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/remediation"
	"millwright.dev/core/safety/freeze"
	"millwright.dev/test/refuse"
)

// TestRefusedRecordIsSeen: what cannot be recorded is not deleted, and the set reports it in the API server's words.
func TestRefusedRecordIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	w.set(1)
	w.start(t, policy.Wrap)
	w.Eventually(w.settled(1))
	policy.Begin(isSet, remediation.ReplacingAnnotation)
	name := livingNames(w)[0]
	w.findUnhealthy(name)
	w.Eventually(w.reports(remediationAllowedConditionType, notReplaceableReason, refuse.Because))
	w.becomes(name, clusterv1.MachineSetMachineRemediationDeferredReason)
	w.G.Expect(w.deletingNow()).To(BeZero())
	policy.Lift()
	w.becomes(name, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	w.Eventually(w.reports(remediationAllowedConditionType, remediationAllowedReason, ""))
}

// frost is a freeze that a test begins and ends.
type frost struct {
	freeze.Never
	cluster client.ObjectKey
	mu      sync.Mutex
	state   freeze.State
	enqueue []func(client.ObjectKey)
}

func (f *frost) Frozen(client.ObjectKey) freeze.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *frost) OnChange(enqueue func(client.ObjectKey)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enqueue = append(f.enqueue, enqueue)
}

func (f *frost) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = freeze.State{}
	for _, enqueue := range f.enqueue {
		enqueue(f.cluster)
	}
}

// TestNothingIsReplacedInAFreeze, and its end is an event.
func TestNothingIsReplacedInAFreeze(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cold := &frost{cluster: client.ObjectKey{Namespace: w.Namespace, Name: "c"}, state: freeze.State{
		Reason: freeze.TargetAPIServerUnreachableReason, Message: "it does not answer", Since: time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC),
	}}
	w.change = func(r *Reconciler) { r.Freeze = cold }
	w.set(2)
	w.start(t)
	w.Eventually(w.settled(2))
	name := livingNames(w)[0]
	w.findUnhealthy(name)
	w.Eventually(w.reports(remediationAllowedConditionType, remediation.FrozenReason,
		"Replacements have been frozen since 2026-11-23T01:02:03Z (TargetAPIServerUnreachable): it does not answer"))
	w.G.Expect(w.deletingNow()).To(BeZero())
	cold.end()
	w.becomes(name, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
}

// TestReplacementsThatFailComeToAnEnd: each knows how many failed before it, across restarts; the last one stays, until a user asks for
// another try.
func TestReplacementsThatFailComeToAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change = func(r *Reconciler) { r.Remediation = remediation.Options{Retry: remediation.Retry{Max: 1}} }
	w.set(1)
	w.start(t)
	w.Eventually(w.settled(1))
	for retry := range 2 {
		before := livingNames(w)[0]
		w.findUnhealthy(before)
		w.becomes(before, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
		w.Stop()
		w.start(t)
		w.Eventually(func(g Gomega) {
			w.endMachines()
			w.settled(1)(g)
			living := w.living()
			g.Expect(living).To(HaveLen(1))
			record := remediation.RecordOf(&living[0])
			g.Expect(record).To(HaveValue(And(HaveField("Machine", before), HaveField("Retry", retry), HaveField("Reason", "UnhealthyNode"))))
			g.Expect(w.current().Annotations).NotTo(HaveKey(remediation.ReplacingAnnotation))
		})
	}
	last := livingNames(w)[0]
	w.findUnhealthy(last)
	w.becomes(last, clusterv1.MachineSetMachineRemediationDeferredReason)
	w.Eventually(
		w.reports(remediationAllowedConditionType, remediation.MaxRetryReachedReason, "Gave up after 2 failed replacements (max-retry is 1)"),
	)
	w.G.Expect(livingNames(w)).To(Equal([]string{last}))
	machine := w.living()[0]
	w.annotate(&machine, clusterv1.RemediateMachineAnnotation, "")
	w.becomes(last, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	w.Eventually(w.reports(remediationAllowedConditionType, remediationAllowedReason, ""))
}

// TestTwoProcessesKeepToTheLimit: two cores at work by mistake, with nothing in common but the API server.
func TestTwoProcessesKeepToTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change = func(r *Reconciler) {
		r.Remediation = remediation.NoLimits()
		r.Remediation.MaxInFlight = "2"
	}
	w.set(6)
	w.start(t)
	w.Eventually(w.settled(6))
	w.Stop()
	unhealthy := livingNames(w)
	w.findUnhealthy(unhealthy...)
	w.start(t)
	w.start(t)
	w.Eventually(func(g Gomega) {
		if going := w.deletingNow(); going > 2 {
			t.Fatalf("%d go at once", going)
		}
		w.endMachines()
		w.bringUp()
		g.Expect(livingNames(w)).NotTo(ContainElement(BeElementOf(unhealthy)))
		w.replacedOnce(g, unhealthy)
	})
	w.G.Expect(w.Machines()).To(HaveLen(6))
}

// TestScaleDownForgetsWhatIsOwed: a replacement that is no longer wanted does not come with the next scale-up.
func TestScaleDownForgetsWhatIsOwed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(2)
	w.start(t)
	w.Eventually(w.settled(2))
	name := livingNames(w)[0]
	w.findUnhealthy(name)
	w.becomes(name, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	w.update(func(set *clusterv1.MachineSet) { *set.Spec.Replicas = 1 })
	w.Eventually(func(g Gomega) {
		w.endMachines()
		w.settled(1)(g)
		g.Expect(w.current().Annotations).NotTo(HaveKey(remediation.ReplacingAnnotation))
	})
	w.update(func(set *clusterv1.MachineSet) { *set.Spec.Replicas = 2 })
	w.Eventually(w.settled(2))
	for _, machine := range w.living() {
		w.G.Expect(machine.Annotations).NotTo(HaveKey(remediation.ReplacesAnnotation))
	}
	w.G.Expect(livingNames(w)).NotTo(ContainElement(name))
}
