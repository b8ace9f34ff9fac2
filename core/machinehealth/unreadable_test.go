package machinehealth_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// Too few Machines are known to be healthy, and no Node can be read. That is reported with the number of Machines, the cause, the metric
// and one event.
func TestReconcile_NodesUnreadable_ReportsNumbers(t *testing.T) {
	w := newWorld(t)
	w.kubeconfig = []byte("none")
	for _, name := range []string{"a", "b"} {
		w.machine(name, "")
		w.status(name, func(s *clusterv1.MachineStatus) { s.NodeRef.Name = w.nodeName(name) })
	}
	w.start()
	w.check("workers", func(c *clusterv1.MachineHealthCheck) {
		c.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromInt32(0))
	})
	w.counts("workers", 2, 0, 0, "Unknown/NodesUnreadable")
	w.Eventually(func(g Gomega) {
		g.Expect(meta.FindStatusCondition(w.current("workers").Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition).
			Message).
			To(And(HavePrefix("2 Machines not judged: "), ContainSubstring("kubeconfig")))
	})
	held := func() float64 {
		return coretest.Gauge(t, "millwright_healthcheck_held", "namespace", w.Namespace, "machinehealthcheck", "workers", "reason",
			"NodesUnreadable")
	}
	w.G.Eventually(held).WithTimeout(workers.Timeout).Should(BeEquivalentTo(2))
	w.atRest()
	w.G.Expect(w.recorded("RemediationRestricted NodesUnreadable")).To(Equal(1))
}
