package cluster_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/safety/freeze"
	"millwright.dev/test/coretest"
)

// TestATargetThatHangsFreezesItsClusterAlone, by the timeout: it accepts requests and never answers, and long before the connection is
// given up as lost nothing is replaced, since what is known of its Nodes is old. When it answers, Nodes get the grace. Nothing changes
// for a Cluster whose API server answers.
func TestATargetThatHangsFreezesItsClusterAlone(t *testing.T) {
	g := NewWithT(t)
	core.ProbeFailures = 1000
	t.Cleanup(func() { core.ProbeFailures = 0 })
	// Within the timeout a connection is made, and a target that does not hang answers, on a computer that is busy.
	freezing(t, freeze.Options{Timeout: 10 * time.Second, Grace: 2 * time.Second})
	target := core.HangingTarget(t)
	hung := initialized(t, reaching(target.URL))
	well := initialized(t, core.Env.Kubeconfig)

	target.Hang(coretest.HangAtFirstByte)
	// It takes more than an hour until the connection counts as lost.
	eventually(t, hung, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("False/" + freeze.TargetAPIServerUnreachableReason))
	})
	read(t, g, hung)
	g.Expect(message(hung, remediationAllowed)).To(ContainSubstring("has not answered since"))
	read(t, g, well)
	g.Expect(condition(well, remediationAllowed)).To(Equal("absent"))
	target.Answer()
	eventually(t, hung, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("True/RemediationAllowed"))
	})
	g.Eventually(func(g Gomega) []string { return reasonsOf(g, t, hung) }).WithTimeout(timeout).
		Should(ContainElements("RemediationFrozen", "RemediationResumed"))
	read(t, g, well)
	g.Expect(condition(well, remediationAllowed)).To(Equal("absent"))
}

func read(t *testing.T, g Gomega, c *clusterv1.Cluster) {
	t.Helper()
	g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c)).To(Succeed())
}
