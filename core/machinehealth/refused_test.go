package machinehealth_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machinehealthcheck"
)

// TestARefusedWriteIsReported in the API server's words, stops none of the others, and is repeated later.
func TestARefusedWriteIsReported(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "False")
	w.machine("b", "False")
	w.refuse = func(_ string, object client.Object) error {
		if _, ok := object.(*clusterv1.Machine); ok && object.GetName() == "a" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "a", errors.New("policy says no"))
		}
		return nil
	}
	w.start()
	w.check("workers")
	w.becomes("b", owner, waiting)
	w.Eventually(func(g Gomega) {
		c := meta.FindStatusCondition(w.current("workers").Status.Conditions, machinehealthcheck.MachinesUpdatedCondition)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Reason).To(Equal(machinehealthcheck.RefusedReason))
		g.Expect(c.Message).To(ContainSubstring("policy says no"))
	})
	w.counts("workers", 2, 0, 0, "True/RemediationAllowed")
	w.Stop()
	w.refuse = nil
	w.start()
	w.becomes("a", owner, waiting)
	w.Eventually(func(g Gomega) {
		c := meta.FindStatusCondition(w.current("workers").Status.Conditions, machinehealthcheck.MachinesUpdatedCondition)
		g.Expect(c.Status).To(BeEquivalentTo("True"))
	})
}

// TestAnAnswerThatIsLost: the write took effect, and its answer never came. It is not repeated, and nothing is lost.
func TestAnAnswerThatIsLost(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "False")
	lost := false
	w.refuse = func(verb string, object client.Object) error {
		if _, ok := object.(*clusterv1.Machine); ok && verb == "status" && !lost {
			lost = true
			after := object.DeepCopyObject().(*clusterv1.Machine)
			w.status("a", func(s *clusterv1.MachineStatus) { s.Conditions = after.Status.Conditions })
			return errors.New("connection reset by peer")
		}
		return nil
	}
	w.start()
	w.check("workers")
	w.becomes("a", owner, waiting)
	w.atRest()
}

// TestPausedMachineHealthCheck: it says so, and nothing is written to Machines; unpaused it acts.
func TestPausedMachineHealthCheck(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "False")
	w.start()
	check := w.check("workers", func(c *clusterv1.MachineHealthCheck) {
		c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	})
	w.Eventually(func(g Gomega) {
		g.Expect(meta.IsStatusConditionTrue(w.current("workers").Status.Conditions, clusterv1.PausedCondition)).To(BeTrue())
	})
	w.atRest()
	w.G.Expect(w.conditionOf("a", succeeded)).To(BeEmpty())
	change(w, check, func(c *clusterv1.MachineHealthCheck) { c.Annotations = nil })
	w.becomes("a", owner, waiting)
}

// TestAClusterThatIsNotThere is reported in the condition, and so is a spec that cannot be used.
func TestAClusterThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.check("lonely", func(c *clusterv1.MachineHealthCheck) { c.Spec.ClusterName = "none" })
	w.check("wrong", func(c *clusterv1.MachineHealthCheck) { c.Spec.Remediation.TriggerIf.UnhealthyInRange = "[3-2]" })
	w.Eventually(func(g Gomega) {
		for name, reason := range map[string]string{"lonely": machinehealthcheck.ClusterMissingReason,
			"wrong": machinehealthcheck.InvalidSpecReason} {
			c := meta.FindStatusCondition(w.current(name).Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
			g.Expect(c).NotTo(BeNil(), name)
			g.Expect(c.Reason).To(Equal(reason))
			g.Expect(c.Status).NotTo(BeEquivalentTo("True"))
		}
	})
}
