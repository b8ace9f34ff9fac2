package machineset

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/test/coretest/workers"
	"millwright.dev/test/refuse"
)

// askFor sets an annotation of a Machine.
func (w *world) askFor(name, key, value string) {
	machine := &clusterv1.Machine{}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, machine)).To(Succeed())
	before := machine.DeepCopy()
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, key, value)
	w.G.Expect(direct.Patch(w.Ctx, machine, client.MergeFrom(before))).To(Succeed())
}

// preserved are the names of the Machines that are kept for inspection; owned those of the set's living ones.
func (w *world) preserved() (preserved, owned []string) {
	for _, machine := range w.living() {
		switch {
		case machines.Preserved(&machine):
			w.G.Expect(metav1.GetControllerOf(&machine)).To(BeNil())
			preserved = append(preserved, machine.Name)
		case metav1.GetControllerOf(&machine) != nil:
			owned = append(owned, machine.Name)
		}
	}
	slices.Sort(preserved)
	slices.Sort(owned)
	return preserved, owned
}

// TestPreserveNow: a Machine that a user wants to inspect leaves the set at once, and another takes its place.
func TestPreserveNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(2)
	w.start(t)
	w.Eventually(w.settled(2))
	names := livingNames(w)
	w.askFor(names[0], machines.PreserveAnnotation, machines.PreserveNow)
	w.Eventually(func(g Gomega) {
		preserved, owned := w.preserved()
		g.Expect(preserved).To(Equal(names[:1]))
		g.Expect(owned).To(HaveLen(2))
		g.Expect(owned).To(ContainElement(names[1]))
		g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(2)))
	})
}

// TestAPreservedMachineIsNotAdopted by the set that it was of, whose selector goes by a label that it keeps, nor by one to whose selector
// it is free now.
func TestAPreservedMachineIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	selector := map[string]string{clusterv1.ClusterNameLabel: workers.ClusterName}
	w.set(2, func(set *clusterv1.MachineSet) {
		set.Spec.Selector.MatchLabels, set.Spec.Template.Labels = selector, map[string]string{
			clusterv1.ClusterNameLabel: workers.ClusterName,
			"team":                     "a",
		}
	})
	w.start(t)
	w.Eventually(w.settled(2))
	names := livingNames(w)
	w.askFor(names[0], machines.PreserveAnnotation, machines.PreserveNow)
	w.Eventually(func(g Gomega) {
		preserved, owned := w.preserved()
		g.Expect(preserved).To(Equal(names[:1]))
		g.Expect(owned).To(HaveLen(2))
	})
	w.set(0, func(set *clusterv1.MachineSet) {
		set.Name, set.Spec.Selector.MatchLabels, set.Spec.Template.Labels = "other", map[string]string{
			"team": "a",
		}, map[string]string{
			"team": "a",
		}
	})
	w.Eventually(func(g Gomega) {
		for _, name := range []string{"s", "other"} {
			set := &clusterv1.MachineSet{}
			g.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, set)).To(Succeed())
			g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
		}
		preserved, owned := w.preserved()
		g.Expect(preserved).To(Equal(names[:1]))
		g.Expect(owned).To(HaveLen(2))
	})
	w.G.Expect(w.deletingNow()).To(BeZero())
	kept := &clusterv1.Machine{}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: names[0]}, kept)).To(Succeed())
	w.G.Expect(kept.Annotations).To(HaveKeyWithValue(machines.PreservedFromAnnotation, ContainSubstring(`"machineSet":"s"`)))
}

// TestPreserveWhenFailed: a Machine that would be replaced is kept, and replaced all the same; one that is well stays as it is. A crash
// at any write changes nothing of that.
func TestPreserveWhenFailed(t *testing.T) {
	want := map[string]int{
		"create Machine": 1, "create MachineV1Beta2": 1, "create ConfigV1Beta2": 1, "patch Machine": 1, "patch MachineSet": 4,
	}
	crashes(t, "patch Machine 1", want, func(t *testing.T, c *workers.Crash) {
		w := newWorld(t)
		deployment := w.deployment("1", ptr.To(intstr.FromInt32(1)))
		w.set(3, of(deployment, "s", "1"))
		w.start(t)
		w.Eventually(w.settled(3))
		w.Stop()
		names := w.namesIn("s")
		for _, name := range names[:2] {
			w.askFor(name, machines.PreserveAnnotation, machines.PreserveWhenFailed)
		}
		w.findUnhealthy(names[0])
		kept := func(g Gomega) {
			preserved, owned := w.preserved()
			g.Expect(preserved).To(Equal(names[:1]))
			g.Expect(owned).To(And(HaveLen(3), ContainElements(names[1], names[2])))
			g.Expect(w.deletingNow()).To(BeZero())
		}
		replaced := func(g Gomega) {
			kept(g)
			w.replacedOnce(g, names[:1])
		}
		w.survive(t, c, replaced)
		w.Eventually(replaced)
	})
}

// TestPreserveFailedMax: so many failed Machines are kept without being asked for, and no more; what says false is not.
func TestPreserveFailedMax(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change = func(r *Reconciler) { r.PreserveFailedMax = 1 }
	w.set(3)
	w.start(t)
	w.Eventually(w.settled(3))
	names := livingNames(w)
	w.askFor(names[0], machines.PreserveAnnotation, machines.PreserveNever)
	w.findUnhealthy(names...)
	w.Eventually(func(g Gomega) {
		w.endMachines()
		preserved, owned := w.preserved()
		g.Expect(preserved).To(HaveLen(1))
		g.Expect(preserved).NotTo(ContainElement(names[0]))
		g.Expect(owned).To(HaveLen(3))
		g.Expect(owned).NotTo(ContainElement(BeElementOf(names)))
	})
}

// TestPreserveIsRefused: a Machine that is to be kept and cannot be is not deleted, and the set reports why.
func TestPreserveIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	w.set(2)
	w.start(t, policy.Wrap)
	w.Eventually(w.settled(2))
	names := livingNames(w)
	w.askFor(names[0], machines.PreserveAnnotation, machines.PreserveWhenFailed)
	policy.Begin(func(o client.Object) bool { return o.GetName() == names[0] }, machines.PreservedLabel)
	w.findUnhealthy(names[0])
	w.Eventually(w.reports(remediationAllowedConditionType, notReplaceableReason, refuse.Because))
	w.G.Expect(w.deletingNow()).To(BeZero())
	policy.Lift()
	w.update(func(set *clusterv1.MachineSet) { metav1.SetMetaDataAnnotation(&set.ObjectMeta, "wake", "up") })
	w.Eventually(func(g Gomega) {
		preserved, owned := w.preserved()
		g.Expect(preserved).To(Equal(names[:1]))
		g.Expect(owned).To(HaveLen(2))
	})
}
