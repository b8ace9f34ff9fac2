package cluster_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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
	options := freeze.DefaultOptions()
	// Within the timeout a connection is made, and a target that does not hang answers, on a computer that is busy.
	options.Timeout, options.Grace = 10*time.Second, 2*time.Second
	core.ProbeFailures = 1000
	t.Cleanup(func() { core.ProbeFailures = 0 })
	freezing(t, options, time.Now())
	cluster := func(kubeconfig func() []byte) *clusterv1.Cluster {
		namespace := core.Namespace(t)
		c := &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
			Spec:       clusterv1.ClusterSpec{Paused: ptr.To(false)},
		}
		core.Create(t, c)
		core.Kubeconfig(t, namespace, "c", kubeconfig())
		eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
			g.Expect(condition(c, clusterv1.ClusterControlPlaneInitializedCondition)).To(HavePrefix("True"))
		})
		return c
	}
	target := core.HangingTarget(t)
	hung := cluster(func() []byte { return reaching(target.URL) })
	well := cluster(func() []byte { return core.Env.Kubeconfig })

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
