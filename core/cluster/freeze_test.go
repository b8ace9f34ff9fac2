package cluster_test

import (
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/safety/freeze"
	"millwright.dev/test/coretest"
)

const remediationAllowed = "RemediationAllowed"

// freezing has the core freeze replacements during a test.
func freezing(t *testing.T, options freeze.Options) {
	t.Helper()
	core.Freeze = options
	core.Restart(t)
	t.Cleanup(func() {
		core.Freeze = freeze.Options{}
		core.Restart(t)
	})
}

// initialized is a Cluster whose control plane answers, and has for more than a second: times in conditions are in whole seconds.
func initialized(t *testing.T, kubeconfig []byte) *clusterv1.Cluster {
	t.Helper()
	namespace := core.Namespace(t)
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)}}
	core.Create(t, c)
	core.Kubeconfig(t, namespace, "c", kubeconfig)
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, clusterv1.ClusterControlPlaneInitializedCondition)).To(HavePrefix("True"))
		g.Expect(condition(c, remediationAllowed)).To(Equal("absent"), "nothing was frozen yet")
		since := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition).LastTransitionTime
		g.Expect(time.Since(since.Time)).To(BeNumerically(">", time.Second))
	})
	return c
}

// While the target's API server is unreachable, the Cluster reports that nothing is replaced, and since when; then that it has ended.
func TestFreeze_TargetUnreachable_IsReported(t *testing.T) {
	g := NewWithT(t)
	freezing(t, freeze.Options{Timeout: 10 * time.Second, Grace: time.Second}) // The first connection is made within the timeout.
	requests := &coretest.Requests{}
	proxy, err := requests.Proxy(core.Env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	var once sync.Once
	down := func() { once.Do(func() { stop(proxy) }) }
	defer down()
	c := initialized(t, reaching(proxy.URL))
	down()
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("False/" + freeze.TargetAPIServerUnreachableReason))
		g.Expect(message(c, remediationAllowed)).To(ContainSubstring("No Machine is replaced: the API server of the target cluster has not answered since"))
	})
	g.Expect(frozen(t, freeze.TargetAPIServerUnreachableReason)).To(BeNumerically(">=", 1))
	rotate(t, c.Namespace, core.Env.Kubeconfig)
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("True/RemediationAllowed"), "after the grace, which no event ends")
	})
	g.Eventually(func(g Gomega) []string { return reasonsOf(g, t, c) }).WithTimeout(timeout).
		Should(ContainElements("RemediationFrozen", "RemediationResumed"))
	g.Eventually(func() float64 { return frozen(t, freeze.RecoveringReason) }).WithTimeout(timeout).Should(BeZero())
}

// recovering is a Cluster whose API server has answered again a moment ago, in a grace of an hour.
func recovering(t *testing.T) *clusterv1.Cluster {
	t.Helper()
	freezing(t, freeze.Options{Timeout: 10 * time.Second, Grace: time.Hour})
	target := core.HangingTarget(t)
	c := initialized(t, reaching(target.URL))
	target.Hang(coretest.HangAtFirstByte)
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("False/" + freeze.TargetAPIServerUnreachableReason))
	})
	target.Answer()
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("False/" + freeze.RecoveringReason))
		g.Expect(message(c, remediationAllowed)).To(ContainSubstring("Nodes get time to report"))
	})
	return c
}

// The annotation of a user ends the grace after an outage, and is removed.
func TestFreeze_UnfreezeAnnotation_EndsTheGrace(t *testing.T) {
	g := NewWithT(t)
	c := recovering(t)
	g.Eventually(func(g Gomega) []string { return reasonsOf(g, t, c) }).WithTimeout(timeout).Should(ContainElement("RemediationFrozen"))
	g.Expect(frozen(t, freeze.RecoveringReason)).To(BeNumerically(">=", 1))
	patched := c.DeepCopy()
	patched.Annotations = map[string]string{freeze.UnfreezeAnnotation: "all Nodes have reported"}
	g.Expect(core.Client.Patch(t.Context(), patched, client.MergeFrom(c))).To(Succeed())
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("True/RemediationAllowed"))
		g.Expect(c.Annotations).NotTo(HaveKey(freeze.UnfreezeAnnotation))
	})
	g.Eventually(func(g Gomega) []string { return reasonsOf(g, t, c) }).WithTimeout(timeout).Should(ContainElement("RemediationResumed"))
}

// frozen is how many Clusters are frozen for a reason.
func frozen(t *testing.T, reason string) float64 {
	t.Helper()
	return coretest.Gauge(t, "millwright_clusters_frozen", "reason", reason)
}

// reasonsOf are those of the events of a Cluster.
func reasonsOf(g Gomega, t *testing.T, c *clusterv1.Cluster) (reasons []string) {
	t.Helper()
	list := &eventsv1.EventList{}
	g.Expect(core.Client.List(t.Context(), list, client.InNamespace(c.Namespace))).To(Succeed())
	for _, event := range list.Items {
		if event.Regarding.Name == c.Name {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}
