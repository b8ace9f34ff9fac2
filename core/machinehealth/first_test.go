package machinehealth_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/health"
	"millwright.dev/test/coretest/workers"
)

// TestTheFirstAssessmentGoesAlong with another write of a Machine exactly where the round would say the same: it finds no Machine healthy
// that the round does not.
func TestTheFirstAssessmentGoesAlong(t *testing.T) {
	w := newWorld(t)
	w.defaults = health.Defaults{HealthTimeout: time.Minute}
	pool := func(name string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Labels["pool"] = name }
	}
	annotated := func(key string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Annotations = map[string]string{key: ""} }
	}
	w.machine("healthy", "True")
	w.machine("by-default", "True", pool("none"))
	w.machine("not-ready", "False")
	w.machine("not-ready-by-default", "False", pool("none"))
	w.machine("no-node", "")
	w.machine("node-gone", "")
	w.status("node-gone", func(s *clusterv1.MachineStatus) { s.NodeRef.Name = "gone" })
	w.machine("paused", "True", annotated(clusterv1.PausedAnnotation))
	w.machine("skipped", "True", annotated(clusterv1.MachineSkipRemediationAnnotation))
	w.machine("demanded", "True", annotated(clusterv1.RemediateMachineAnnotation))
	w.machine("check-paused", "True", pool("paused"))
	w.machine("two-checks", "True", pool("two"))
	w.machine("rival-a", "True")
	w.machine("rival-b", "", func(m *clusterv1.Machine) { m.Spec.ProviderID = "" })
	w.status("rival-b", func(s *clusterv1.MachineStatus) { s.NodeRef.Name = w.nodeName("rival-a") })
	w.machine("other-id", "True", func(m *clusterv1.Machine) { m.Spec.ProviderID = "test:///another" })
	w.check("strict", func(c *clusterv1.MachineHealthCheck) {
		c.Spec.Selector.MatchLabels["pool"] = "two"
		c.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{
			{Type: "Ready", Status: "True", TimeoutSeconds: ptr.To[int32](3600)},
		}
	})
	w.check("of-two", func(c *clusterv1.MachineHealthCheck) { c.Spec.Selector.MatchLabels["pool"] = "two" })
	w.check("rests", func(c *clusterv1.MachineHealthCheck) {
		c.Spec.Selector.MatchLabels["pool"] = "paused"
		c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	})
	w.check("workers")
	w.start()
	w.becomes("healthy", succeeded, well)
	w.becomes("by-default", succeeded, well)
	w.becomes("demanded", succeeded, "False/HasRemediateAnnotation")
	cluster := &clusterv1.Cluster{}
	w.G.Expect(direct.Get(w.Ctx, w.key(workers.ClusterName), cluster)).To(Succeed())

	for _, m := range w.Machines() {
		t.Run(m.Name, func(t *testing.T) {
			g := NewWithT(t)
			said := w.conditionOf(m.Name, succeeded)
			first := m.DeepCopy()
			meta.RemoveStatusCondition(&first.Status.Conditions, succeeded)
			g.Expect(w.judge.AddFirst(w.Ctx, cluster, first, time.Now())).To(Succeed())
			found := meta.FindStatusCondition(first.Status.Conditions, succeeded)
			if said != well {
				g.Expect(found).To(BeNil(), "the round says %q", said)
				return
			}
			g.Expect(found).NotTo(BeNil())
			known := meta.FindStatusCondition(m.Status.Conditions, succeeded)
			g.Expect(*found).To(And(HaveField("Status", known.Status), HaveField("Reason", known.Reason), HaveField("Message", known.Message)))
			g.Expect(m.Name).To(BeElementOf("healthy", "by-default"))
			g.Expect(first.GetV1Beta1Conditions()).To(ContainElement(HaveField("Type", clusterv1.MachineHealthCheckSucceededV1Beta1Condition)))
		})
	}
}

// TestTheFirstAssessmentIsNotAddedTwice, nor to who goes, nor when it cannot be known.
func TestTheFirstAssessmentIsNotAddedTwice(t *testing.T) {
	w := newWorld(t)
	w.check("workers")
	w.machine("a", "True")
	w.start()
	w.becomes("a", succeeded, well)
	read, cluster := &clusterv1.Machine{}, &clusterv1.Cluster{}
	w.G.Expect(direct.Get(w.Ctx, w.key("a"), read)).To(Succeed())
	w.G.Expect(direct.Get(w.Ctx, w.key(workers.ClusterName), cluster)).To(Succeed())
	for name, test := range map[string]struct {
		change func(*clusterv1.Machine, *clusterv1.Cluster)
		adds   bool
	}{
		"it has none": {func(*clusterv1.Machine, *clusterv1.Cluster) {}, true},
		"reported by another controller": {func(m *clusterv1.Machine, _ *clusterv1.Cluster) {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: succeeded, Status: "False", Reason: "ByHand"})
		}, false},
		"it goes":                    {func(m *clusterv1.Machine, _ *clusterv1.Cluster) { m.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
		"it has no Node yet":         {func(m *clusterv1.Machine, _ *clusterv1.Cluster) { m.Status.NodeRef.Name = "" }, false},
		"nothing selects it":         {func(m *clusterv1.Machine, _ *clusterv1.Cluster) { m.Labels = nil }, false},
		"its instance is lost":       {func(m *clusterv1.Machine, _ *clusterv1.Cluster) { lose(m) }, false},
		"its Cluster goes":           {func(_ *clusterv1.Machine, c *clusterv1.Cluster) { c.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
		"its Cluster is paused":      {func(_ *clusterv1.Machine, c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) }, false},
		"its Cluster is not ready":   {func(_ *clusterv1.Machine, c *clusterv1.Cluster) { c.Status.Conditions = nil }, false},
		"its Cluster is another one": {func(_ *clusterv1.Machine, c *clusterv1.Cluster) { c.Name = "not-connected" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, m, c := NewWithT(t), read.DeepCopy(), cluster.DeepCopy()
			meta.RemoveStatusCondition(&m.Status.Conditions, succeeded)
			test.change(m, c)
			before := m.DeepCopy()
			g.Expect(w.judge.AddFirst(w.Ctx, c, m, time.Now())).To(Succeed())
			if !test.adds {
				g.Expect(m).To(Equal(before))
				return
			}
			g.Expect(meta.IsStatusConditionTrue(m.Status.Conditions, succeeded)).To(BeTrue())
		})
	}
}

// lose has the provider of a Machine report that its instance no longer exists.
func lose(m *clusterv1.Machine) {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
		Type: clusterv1.MachineInfrastructureReadyCondition, Status: "False", Reason: "InstanceTerminated",
	})
}
