package machineset

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/coretest/workers"
	"millwright.dev/test/refuse"
)

// freeze labels an object; with "" it takes the label away.
func (w *world) freeze(object client.Object, value string) {
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, overshoot.FrozenLabel, text)
	w.G.Expect(direct.Patch(w.Ctx, object, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
}

// TestAFrozenSetOnlyShrinks: it creates nothing, replaces nothing, and says why; what is too much goes all the same.
func TestAFrozenSetOnlyShrinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(3)
	w.start(t)
	w.Eventually(w.settled(3))
	w.freeze(w.current(), "by-me")
	w.Eventually(
		w.reports(overshoot.FrozenCondition, overshoot.FrozenByLabelReason, "a user has set the label safety.millwright.dev/frozen=by-me"),
	)
	w.G.Expect(w.condition(w.G, overshoot.FrozenCondition).Status).To(Equal(metav1.ConditionTrue))
	w.Eventually(
		w.reports(
			clusterv1.MachineSetScalingUpCondition,
			clusterv1.MachineSetNotScalingUpReason,
			"Scaling up would be blocked:\n* frozen (FrozenByLabel)",
		),
	)
	gone, ill := w.Machines()[0], w.Machines()[1]
	w.findUnhealthy(ill.Name)
	w.becomes(ill.Name, clusterv1.MachineSetMachineRemediationDeferredReason)
	w.G.Expect(direct.Delete(w.Ctx, &gone)).To(Succeed())
	w.Eventually(func(g Gomega) {
		w.endMachines()
		w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "from 2 to 3 replicas is blocked:\n* frozen (FrozenByLabel)")(g)
	})
	w.G.Expect(w.Machines()).To(HaveLen(2))
	for _, machine := range w.Machines() {
		w.G.Expect(machine.Labels).NotTo(HaveKey(overshoot.FrozenLabel), "the label of a set is not for its Machines")
	}
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](1) })
	w.Eventually(func(g Gomega) { g.Expect(w.living()).To(HaveLen(1)) })
	w.freeze(w.current(), "")
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](2) })
	w.Eventually(func(g Gomega) {
		w.endMachines()
		g.Expect(w.living()).To(HaveLen(2))
	})
	w.Eventually(w.reports(overshoot.FrozenCondition, overshoot.NotFrozenReason, ""))
}

// TestASetIsFrozenWithItsDeployment: it shows it, and has a label that goes with that of the deployment. When the label is refused the set
// creates nothing all the same.
func TestASetIsFrozenWithItsDeployment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	d := w.deployment("1", nil)
	w.set(1, of(d, "s", "1"))
	w.start(t, policy.Wrap)
	w.Eventually(w.settled(1))
	template := w.current().Spec.Template
	policy.Begin(isSet, overshoot.FrozenLabel)
	w.freeze(d, "by-me")
	w.Eventually(w.reports(overshoot.FrozenCondition, overshoot.FrozenByLabelReason, "MachineDeployment d: a user has set the label"))
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetScalingUpInternalErrorReason, refuse.Because))
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](2) })
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "frozen (FrozenByLabel)"))
	policy.Lift()
	label := func(want any) func(Gomega) {
		return func(g Gomega) { g.Expect(w.current().Labels[overshoot.FrozenLabel]).To(BeEquivalentTo(want)) }
	}
	w.Eventually(label(overshoot.ByDeployment))
	w.G.Expect(w.Machines()).To(HaveLen(1))
	w.G.Expect(w.current().Spec.Template).To(Equal(template))
	w.freeze(d, "")
	w.Eventually(w.settled(2))
	w.Eventually(label(""))
	w.Eventually(w.reports(overshoot.FrozenCondition, overshoot.NotFrozenReason, ""))
}

// TestCrashWhileFrozen: whichever write is the last, nothing is created, and the next process has the label right.
func TestCrashWhileFrozen(t *testing.T) {
	want := map[string]int{
		"patch MachineSet": 2, "patch MachineV1Beta2Template": 1, "patch ConfigV1Beta2Template": 1, "patch status of MachineSet": 1,
	}
	crashes(t, "patch MachineSet 2", want, func(t *testing.T, c *workers.Crash) {
		w := newWorld(t)
		d := w.deployment("1", nil)
		w.freeze(d, "by-me")
		w.set(1, of(d, "s", "1"))
		shown := func(g Gomega) {
			g.Expect(w.current().Labels).To(HaveKeyWithValue(overshoot.FrozenLabel, overshoot.ByDeployment))
			w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "frozen")(g)
		}
		w.survive(t, c, shown)
		w.Eventually(shown)
		w.G.Expect(w.Machines()).To(BeEmpty())
		w.freeze(d, "")
		w.Eventually(w.settled(1))
	})
}
