package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/template"
	"millwright.dev/test/coretest/workers"
)

func TestFieldsReachMachinesInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, func(s *clusterv1.MachineSet) { s.Spec.Template.Annotations = map[string]string{"old": "x"} })
	w.start(t)
	w.Eventually(w.complete(1))
	before := w.Machines()[0]
	w.update(func(set *clusterv1.MachineSet) {
		set.Spec.Template.Labels["tier"] = "front"
		set.Spec.Template.Annotations = map[string]string{"new": "y"}
		set.Spec.Template.Spec.MinReadySeconds = ptr.To[int32](7)
		set.Spec.Template.Spec.Version = "v1.37.0"
	})
	w.Eventually(func(g Gomega) {
		machines := w.Machines()
		g.Expect(machines).To(HaveLen(1))
		after := machines[0]
		g.Expect(after.UID).To(Equal(before.UID))
		g.Expect(after.Labels).To(HaveKeyWithValue("tier", "front"))
		g.Expect(after.Annotations).To(And(HaveKeyWithValue("new", "y"), Not(HaveKey("old"))))
		g.Expect(after.Spec.MinReadySeconds).To(HaveValue(BeEquivalentTo(7)))
		g.Expect(after.Spec.Version).To(Equal(before.Spec.Version), "a version asks for new Machines")
		for _, kind := range workers.ChildKinds {
			child := w.child(g, kind, after.Name)
			g.Expect(child.GetLabels()).To(HaveKeyWithValue("tier", "front"))
			g.Expect(child.GetAnnotations()).To(And(HaveKeyWithValue("new", "y"), Not(HaveKey("old")),
				HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, "t")))
		}
	})
}

// inPlace changes every field of the template that reaches Machines.
func inPlace(set *clusterv1.MachineSet) {
	set.Spec.Template.Labels["tier"] = "back"
	set.Spec.Template.Annotations = map[string]string{"note": "new"}
	spec := &set.Spec.Template.Spec
	spec.MinReadySeconds = ptr.To[int32](7)
	spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Gate", Polarity: clusterv1.PositivePolarityCondition}}
	spec.Taints = []clusterv1.MachineTaint{
		{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways},
	}
	spec.Deletion = clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds: ptr.To[int32](1), NodeVolumeDetachTimeoutSeconds: ptr.To[int32](2), NodeDeletionTimeoutSeconds: ptr.To[int32](3),
	}
}

// TestEachFieldInPlace goes through living and deleting Machines, and through what was created for them.
func TestEachFieldInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(2, func(set *clusterv1.MachineSet) { set.Spec.Template.Annotations = map[string]string{"gone": "soon"} })
	w.start(t)
	w.Eventually(w.settled(2))
	going, staying := w.Machines()[0], w.Machines()[1]
	w.annotate(&staying, "mine", "kept")
	w.G.Expect(direct.Delete(w.Ctx, going.DeepCopy())).To(Succeed())
	w.update(inPlace)
	spec := w.current().Spec.Template.Spec
	w.Eventually(func(g Gomega) {
		for _, machine := range w.Machines() {
			g.Expect(machine.Spec.MinReadySeconds).To(Equal(spec.MinReadySeconds))
			g.Expect(machine.Spec.ReadinessGates).To(Equal(spec.ReadinessGates))
			g.Expect(machine.Spec.Taints).To(Equal(spec.Taints))
			g.Expect(machine.Spec.Deletion).To(Equal(spec.Deletion))
			if machine.Name == going.Name {
				g.Expect(machine.Labels).NotTo(HaveKey("tier"))
				g.Expect(machine.Annotations).To(HaveKey("gone"), "the metadata of one that goes stay")
				continue
			}
			g.Expect(machine.Labels).To(HaveKeyWithValue("tier", "back"))
			g.Expect(machine.Annotations).To(And(HaveKeyWithValue("note", "new"), HaveKeyWithValue("mine", "kept"), Not(HaveKey("gone"))))
		}
		for _, kind := range workers.ChildKinds {
			child := w.child(g, kind, staying.Name)
			g.Expect(child.GetLabels()).To(HaveKeyWithValue("tier", "back"))
			g.Expect(child.GetAnnotations()).To(And(HaveKeyWithValue("note", "new"), Not(HaveKey("gone")),
				HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, "t")))
		}
	})
}

// TestFieldsThatMakeARollout stay as they are on existing Machines.
func TestFieldsThatMakeARollout(t *testing.T) {
	g := NewWithT(t)
	set := validSet()
	m := desiredMachine(set, "m")
	before := m.DeepCopy()
	spec := &set.Spec.Template.Spec
	spec.Version, spec.FailureDomain, spec.Bootstrap.DataSecretName = "v9.9.9", "z", ptr.To("other")
	spec.InfrastructureRef.Name, spec.InfrastructureRef.Kind = "u", "YTemplate"
	g.Expect(differs(m, set)).To(BeFalse())
	propagate(m, set)
	g.Expect(m).To(Equal(before))
	kind, err := template.KindOf("XTemplate")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Spec.InfrastructureRef.Kind).To(Equal(kind))
}

// TestCrashWhilePropagating ends the process at each write: the Machine is written after what belongs to it, so that
// it reports what is still to be done.
func TestCrashWhilePropagating(t *testing.T) {
	want := map[string]int{
		"patch Machine": 2, "patch MachineV1Beta2": 2, "patch ConfigV1Beta2": 2,
	}
	crashes(t, "patch Machine 1", want, func(t *testing.T, c *workers.Crash) {
		w := newWorld(t)
		w.set(2)
		w.start(t)
		w.Eventually(w.settled(2))
		w.Stop()
		w.update(inPlace)
		done := func(g Gomega) {
			for _, machine := range w.Machines() {
				g.Expect(machine.Labels).To(HaveKeyWithValue("tier", "back"))
				g.Expect(machine.Spec.MinReadySeconds).To(HaveValue(BeEquivalentTo(7)))
				for _, kind := range workers.ChildKinds {
					g.Expect(w.child(g, kind, machine.Name).GetLabels()).To(HaveKeyWithValue("tier", "back"))
				}
			}
			w.settled(2)(g)
		}
		w.survive(t, c, done)
		w.Eventually(done)
	})
}

// TestCrashWhileGoing ends the process at each write of a set that is being deleted.
func TestCrashWhileGoing(t *testing.T) {
	want := map[string]int{
		"delete Machine": 2, "patch MachineSet": 1,
	}
	crashes(t, "delete Machine 1", want, func(t *testing.T, c *workers.Crash) {
		w := newWorld(t)
		set := w.set(2)
		w.start(t)
		w.Eventually(w.settled(2))
		w.Stop()
		w.G.Expect(direct.Delete(w.Ctx, w.current())).To(Succeed())
		gone := func(g Gomega) {
			w.endMachines()
			g.Expect(client.IgnoreNotFound(direct.Get(w.Ctx, client.ObjectKeyFromObject(set), &clusterv1.MachineSet{}))).To(Succeed())
			g.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(set), &clusterv1.MachineSet{})).NotTo(Succeed())
			g.Expect(w.Machines()).To(BeEmpty())
		}
		w.survive(t, c, gone)
		w.Eventually(gone)
	})
}

// TestNothingIsPolled: a set whose Machines come up waits for their events. Cluster API looks again every 15 seconds.
func TestNothingIsPolled(t *testing.T) {
	w := newWorld(t)
	set := w.set(2)
	w.start(t)
	w.Eventually(w.settled(2))
	w.Eventually(func(g Gomega) {
		result, err := w.reconciler.Reconcile(w.Ctx, requestFor(set))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(BeZero())
	})
	w.G.Expect(w.current().Status.ReadyReplicas).To(HaveValue(BeEquivalentTo(0)), "none is ready")
}

// TestDefaultsAreApplied, as admission would have: the autoscaler reads the number of replicas from the object.
func TestDefaultsAreApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(0, func(set *clusterv1.MachineSet) {
		set.Spec.Replicas = nil
		set.Spec.Template.Spec.Version = "1.36.3"
		set.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "2", clusterv1.AutoscalerMaxSizeAnnotation: "3"}
	})
	w.start(t)
	w.Eventually(w.settled(2))
	w.G.Expect(w.current().Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	w.G.Expect(w.Machines()[0].Spec.Version).To(Equal("v1.36.3"))
}
