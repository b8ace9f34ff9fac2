package machineset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/remediation"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// deployment makes a MachineDeployment of that revision; no controller runs for it here.
func (w *world) deployment(revision string, maxInFlight *intstr.IntOrString) *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "d", Annotations: map[string]string{clusterv1.RevisionAnnotation: revision}},
	}
	set := &clusterv1.MachineSet{}
	w.fill(set, 2)
	deployment.Spec = clusterv1.MachineDeploymentSpec{
		ClusterName: workers.ClusterName, Replicas: ptr.To[int32](2), Selector: set.Spec.Selector, Template: set.Spec.Template,
		Remediation: clusterv1.MachineDeploymentRemediationSpec{MaxInFlight: maxInFlight},
	}
	w.Create(deployment)
	return deployment
}

// of puts a set under a deployment, at a revision and with Machines of its own.
func of(deployment *clusterv1.MachineDeployment, name, revision string) func(*clusterv1.MachineSet) {
	return func(set *clusterv1.MachineSet) {
		set.Name = name
		set.Labels = map[string]string{clusterv1.MachineDeploymentNameLabel: deployment.Name}
		set.Annotations = map[string]string{clusterv1.RevisionAnnotation: revision}
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, clusterv1.GroupVersion.WithKind("MachineDeployment"))}
		set.Spec.Selector.MatchLabels = map[string]string{"pool": "a", "set": name}
		set.Spec.Template.Labels = map[string]string{"pool": "a", "set": name}
	}
}

// judge writes what a health check and its owner are to say about a Machine; nil for what it does not say.
func (w *world) judge(name string, list ...metav1.Condition) {
	w.Eventually(func(g Gomega) {
		machine := &clusterv1.Machine{}
		g.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, machine)).To(Succeed())
		before := machine.DeepCopy()
		for _, condition := range list {
			conditions.Set(&machine.Status.Conditions, condition, machine.Generation, time.Now())
		}
		g.Expect(direct.Status().Patch(w.Ctx, machine, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).To(Succeed())
	})
}

// findUnhealthy does what a health check does.
func (w *world) findUnhealthy(names ...string) {
	for _, name := range names {
		w.judge(name, conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "UnhealthyNode", ""),
			conditions.False(clusterv1.MachineOwnerRemediatedCondition, "WaitingForRemediation", ""))
	}
}

// bringUp has all living Machines become available.
func (w *world) bringUp() {
	for _, machine := range w.living() {
		if !meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineAvailableCondition) {
			w.judge(machine.Name, conditions.True(clusterv1.MachineAvailableCondition, "Available", ""))
		}
	}
}

// fate is the reason that a Machine's OwnerRemediated has; "" without one, "gone" without a Machine.
func (w *world) fate(name string) string {
	for _, machine := range w.Machines() {
		if machine.Name == name {
			if found := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition); found != nil {
				return found.Reason
			}
			return ""
		}
	}
	return "gone"
}

func (w *world) becomes(name, fate string) {
	w.G.Eventually(func() string { return w.fate(name) }).WithTimeout(workers.Timeout).WithPolling(workers.PollInterval).Should(Equal(fate))
}

// deletingNow counts the Machines that are being deleted, in one list: another one may come between two.
func (w *world) deletingNow() (deleting int) {
	for _, machine := range w.Machines() {
		if !machine.DeletionTimestamp.IsZero() {
			deleting++
		}
	}
	return deleting
}

func TestRemediationOfAStandaloneSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(3)
	w.start(t)
	w.Eventually(w.settled(3))
	names := livingNames(w)
	w.findUnhealthy(names[0], names[1])
	w.becomes(names[0], clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	w.becomes(names[1], clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	w.Eventually(func(g Gomega) {
		g.Expect(w.deletingNow()).To(Equal(2))
		g.Expect(w.Machines()).To(HaveLen(3), "a Machine is replaced when it is gone")
		w.reports(clusterv1.MachineSetRemediatingCondition, clusterv1.MachineSetRemediatingReason, "is deleted and will be replaced")(g)
	})
	w.Eventually(func(g Gomega) {
		w.endMachines()
		w.settled(3)(g)
	})
	w.G.Expect(livingNames(w)).To(ContainElement(names[2]), "the healthy one was left alone")
	replaced := func() float64 {
		return coretest.Gauge(t, "millwright_replacements_total", "cluster", w.Namespace+"/"+workers.ClusterName, "reason", "UnhealthyNode")
	}
	w.G.Expect(replaced()).To(BeEquivalentTo(2))
	forgetReplacements(client.ObjectKey{Namespace: w.Namespace, Name: workers.ClusterName})
	w.G.Expect(replaced()).To(BeEquivalentTo(-1), "the Cluster is deleted")
	w.Eventually(w.reports(clusterv1.MachineSetRemediatingCondition, clusterv1.MachineSetNotRemediatingReason, ""))
}

func TestNoRemediationWithoutTheHealthCheckAskingForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(2)
	w.start(t)
	w.Eventually(w.settled(2))
	names := livingNames(w)
	w.judge(names[0], conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "UnhealthyNode", ""))
	w.Eventually(w.reports(clusterv1.MachineSetRemediatingCondition, clusterv1.MachineSetNotRemediatingReason, names[0]))

	// It is well again before anything was done, in the same write in which the owner was asked.
	w.judge(names[1], conditions.True(clusterv1.MachineHealthCheckSucceededCondition, "HealthCheckSucceeded", ""),
		conditions.False(clusterv1.MachineOwnerRemediatedCondition, "WaitingForRemediation", ""))
	w.becomes(names[1], "")
	w.G.Expect(w.living()).To(HaveLen(2))
}

// TestRemediationsOfAllSetsOfADeploymentCount is what Cluster API does not do: its limit is one for each MachineSet.
// The end of a remediation in one set lets the other continue, without anything looking at the clock.
func TestRemediationsOfAllSetsOfADeploymentCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deployment := w.deployment("1", ptr.To(intstr.FromInt32(1)))
	w.set(1, of(deployment, "first", "1"))
	w.start(t)
	w.Eventually(func(g Gomega) { g.Expect(w.namesIn("first")).To(HaveLen(1)) })
	old := w.namesIn("first")[0]
	w.findUnhealthy(old)
	w.becomes(old, clusterv1.MachineSetMachineRemediationMachineDeletingReason)

	w.set(2, of(deployment, "s", "2"))
	w.Eventually(func(g Gomega) { g.Expect(w.namesIn("s")).To(HaveLen(2)) })
	w.annotate(deployment, clusterv1.RevisionAnnotation, "2")
	young := w.namesIn("s")
	w.findUnhealthy(young...)
	for _, name := range young {
		w.becomes(name, clusterv1.MachineSetMachineRemediationDeferredReason)
	}
	w.Eventually(func(g Gomega) {
		w.reports(clusterv1.MachineSetRemediatingCondition, clusterv1.MachineSetRemediatingReason, "spec.remediation.maxInFlight of MachineDeployment d 1 allows 1 replacement at once")(g)
		w.reports(clusterv1.MachineSetRemediatingCondition, clusterv1.MachineSetRemediatingReason, "In flight in other MachineSets: "+old)(g)
	})
	w.G.Expect(w.deletingNow()).To(Equal(1))
	blocked := func() float64 {
		return coretest.Gauge(
			t,
			"millwright_remediation_blocked",
			"namespace",
			w.Namespace,
			"machineset",
			"s",
			"reason",
			remediation.MaxInFlightReason,
		)
	}
	w.G.Eventually(blocked).WithTimeout(workers.Timeout).WithPolling(workers.PollInterval).Should(BeEquivalentTo(2))

	w.endMachines()
	w.Eventually(func(g Gomega) { g.Expect(w.deletingNow()).To(Equal(1)) })
	w.endMachines()
	w.Eventually(func(g Gomega) { g.Expect(w.namesIn("s")).To(HaveLen(2)) })
	w.Eventually(
		w.reports(clusterv1.MachineSetRemediatingCondition, clusterv1.MachineSetRemediatingReason, "Waiting until others are available"),
	)
	w.G.Expect(w.deletingNow()).To(BeZero(), "the replacement has not come up")
	w.bringUp()
	w.Eventually(func(g Gomega) { g.Expect(w.deletingNow()).To(Equal(1)) })
	w.G.Expect(w.fate(young[0]) == "gone" || w.fate(young[1]) == "gone").To(BeTrue())
	// More room is an event as well. The deleted one has a successor by then, or that would not be asked for.
	w.Eventually(func(g Gomega) { g.Expect(w.namesIn("s")).To(HaveLen(1)) })
	third := w.namesIn("s")
	w.findUnhealthy(third...)
	before := deployment.DeepCopy()
	deployment.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromString("100%"))
	w.G.Expect(direct.Patch(w.Ctx, deployment, client.MergeFrom(before))).To(Succeed())
	w.Eventually(func(g Gomega) { g.Expect(w.deletingNow()).To(Equal(2)) })
}

func (w *world) annotate(object client.Object, key, value string) {
	before := object.DeepCopyObject().(client.Object)
	annotations := cloned(object.GetAnnotations())
	annotations[key] = value
	object.SetAnnotations(annotations)
	w.G.Expect(direct.Patch(w.Ctx, object, client.MergeFrom(before))).To(Succeed())
}

func TestNoRemediationOfAnEarlierRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deployment := w.deployment("2", nil)
	w.set(1, of(deployment, "s", "1"))
	w.start(t)
	w.Eventually(func(g Gomega) { g.Expect(w.namesIn("s")).To(HaveLen(1)) })
	name := w.namesIn("s")[0]
	w.findUnhealthy(name)
	w.becomes(name, clusterv1.MachineSetMachineCannotBeRemediatedReason)
	w.G.Expect(w.deletingNow()).To(BeZero())
	w.Eventually(w.reports(remediationAllowedConditionType, clusterv1.MachineSetMachineCannotBeRemediatedReason, "left to the rollout"))
	w.G.Eventually(func() float64 {
		return coretest.Gauge(t, "millwright_remediation_blocked", "namespace", w.Namespace, "machineset", "s",
			"reason", clusterv1.MachineSetMachineCannotBeRemediatedReason)
	}).WithTimeout(workers.Timeout).WithPolling(workers.PollInterval).Should(BeEquivalentTo(1))
	// Nothing takes it away while the rollout is paused, and it says so.
	paused := deployment.DeepCopy()
	deployment.Spec.Paused = ptr.To(true)
	w.G.Expect(direct.Patch(w.Ctx, deployment, client.MergeFrom(paused))).To(Succeed())
	w.Eventually(
		w.reports(remediationAllowedConditionType, clusterv1.MachineSetMachineCannotBeRemediatedReason, "is paused (spec.paused): unpause it"),
	)
	// The deployment goes back to it, by nothing but its annotation.
	w.annotate(deployment, clusterv1.RevisionAnnotation, "1")
	w.becomes(name, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
}

func TestNoRemediationThatCouldNotBeMadeUpFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1)
	w.start(t)
	w.Eventually(w.settled(1))
	w.G.Expect(direct.Delete(t.Context(), w.Template(workers.InfraTemplateKind, "t"))).To(Succeed())
	name := livingNames(w)[0]
	w.findUnhealthy(name)
	w.becomes(name, clusterv1.MachineSetMachineRemediationDeferredReason)
	w.Eventually(
		w.reports(
			clusterv1.MachineSetRemediatingCondition,
			clusterv1.MachineSetRemediatingReason,
			workers.InfraTemplateKind+" "+w.Namespace+"/t does not exist",
		),
	)
	w.update(func(set *clusterv1.MachineSet) {
		set.Annotations = map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"}
	})
	// The controller must know of it before it hears of the template, by another watch.
	w.Eventually(
		w.reports(
			clusterv1.MachineSetRemediatingCondition,
			clusterv1.MachineSetRemediatingReason,
			"* the annotation cluster.x-k8s.io/disable-machine-create",
		),
	)
	w.Create(w.Template(workers.InfraTemplateKind, "t"))
	w.Eventually(func(g Gomega) {
		g.Expect(w.condition(g, clusterv1.MachineSetRemediatingCondition).Message).To(And(
			ContainSubstring("* the annotation cluster.x-k8s.io/disable-machine-create"), Not(ContainSubstring("does not exist"))))
	})
	w.G.Expect(w.deletingNow()).To(BeZero())
	w.update(func(set *clusterv1.MachineSet) { set.Annotations = nil })
	w.becomes(name, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
}
