package cluster_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
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

// freezing has the core freeze replacements during a test, after one that was last at work until then.
func freezing(t *testing.T, options freeze.Options, lastAtWork time.Time) {
	t.Helper()
	core.Freeze = options
	renewed := metav1.NewMicroTime(lastAtWork)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: coretest.Lease},
		Spec:       coordinationv1.LeaseSpec{AcquireTime: &renewed, RenewTime: &renewed},
	}
	NewWithT(t).Expect(core.Client.Create(t.Context(), lease)).To(Succeed())
	core.Restart(t)
	t.Cleanup(func() {
		core.Freeze = freeze.Options{}
		NewWithT(t).Expect(core.Client.Delete(context.Background(), lease)).To(Succeed())
		core.Restart(t)
	})
}

// TestRemediationIsFrozenWhileTheTargetDoesNotAnswer: the Cluster reports it, and since when, and that it has ended.
func TestRemediationIsFrozenWhileTheTargetDoesNotAnswer(t *testing.T) {
	g := NewWithT(t)
	options := freeze.DefaultOptions()
	options.Timeout, options.Grace = 10*time.Second, time.Second // The first connection is made within the timeout.
	freezing(t, options, time.Now())
	namespace := core.Namespace(t)
	requests := &coretest.Requests{}
	proxy, err := requests.Proxy(core.Env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	var once sync.Once
	down := func() { once.Do(func() { stop(proxy) }) }
	defer down()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)}}
	core.Create(t, c)
	core.Kubeconfig(t, namespace, "c", reaching(proxy.URL))
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, clusterv1.ClusterControlPlaneInitializedCondition)).To(HavePrefix("True"))
		g.Expect(condition(c, remediationAllowed)).To(Equal("absent"), "nothing was frozen yet")
	})
	down()
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("False/" + freeze.TargetAPIServerUnreachableReason))
		g.Expect(message(c, remediationAllowed)).To(ContainSubstring("No Machine is replaced: the API server of the target cluster has not answered since"))
	})
	rotate(t, namespace, core.Env.Kubeconfig)
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("True/RemediationAllowed"), "after the grace, which no event ends")
	})
	g.Eventually(func(g Gomega) []string { return reasonsOf(g, t, c) }).WithTimeout(timeout).
		Should(ContainElements("RemediationFrozen", "RemediationResumed"))
}

// restored is a Cluster whose management cluster seems to have been restored: a Node has joined after the backup whose Machine is not
// there.
func restored(t *testing.T) *clusterv1.Cluster {
	t.Helper()
	g := NewWithT(t)
	c := initialized(t)
	lost := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace + "-lost", Annotations: map[string]string{
		clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: c.Namespace, clusterv1.MachineAnnotation: "lost",
	}}}
	g.Expect(core.Client.Create(t.Context(), lost)).To(Succeed())
	t.Cleanup(func() { _ = core.Client.Delete(context.Background(), lost) })
	options := freeze.DefaultOptions()
	options.Grace = 0
	freezing(t, options, time.Now().Add(-2*time.Hour))
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("False/" + freeze.RestoreSuspectedReason))
		g.Expect(message(c, remediationAllowed)).To(ContainSubstring("as Machines that do not exist: " + lost.Name))
	})
	return c
}

// TestRestoredBackup: the Cluster of a management cluster that was restored from a backup is frozen, since a Node has joined after the
// backup whose Machine is not there. The annotation of a user who has investigated it ends that, and is removed.
func TestRestoredBackup(t *testing.T) {
	g := NewWithT(t)
	c := restored(t)
	g.Eventually(func(g Gomega) []string { return reasonsOf(g, t, c) }).WithTimeout(timeout).Should(ContainElement("RemediationFrozen"))
	g.Expect(frozen(t, freeze.RestoreSuspectedReason)).To(BeNumerically(">=", 1))
	patched := c.DeepCopy()
	patched.Annotations = map[string]string{freeze.UnfreezeAnnotation: "the Machine was adopted"}
	g.Expect(core.Client.Patch(t.Context(), patched, client.MergeFrom(c))).To(Succeed())
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("True/RemediationAllowed"))
		g.Expect(c.Annotations).NotTo(HaveKey(freeze.UnfreezeAnnotation))
	})
}

// TestCoreWasAway: the grace after a time without a core is reported by each Cluster that had a control plane before, once, and ends by
// itself.
func TestCoreWasAway(t *testing.T) {
	g := NewWithT(t)
	c := initialized(t)

	options := freeze.DefaultOptions()
	options.Grace, options.RestoreGrace = 20*time.Second, 0 // As long as a start may take.
	freezing(t, options, time.Now().Add(-2*time.Hour))
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("False/" + freeze.CoreWasAwayReason))
		g.Expect(message(c, remediationAllowed)).
			To(And(HavePrefix("No Machine is replaced until "), ContainSubstring("no core was running from ")))
		g.Expect(frozen(t, freeze.CoreWasAwayReason)).To(BeNumerically(">=", 1))
	})
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("True/RemediationAllowed"))
		g.Expect(frozen(t, freeze.CoreWasAwayReason)).To(BeZero())
	})
	g.Eventually(func(g Gomega) (all []string) {
		for _, reason := range reasonsOf(g, t, c) {
			if strings.HasPrefix(reason, "Remediation") {
				all = append(all, reason)
			}
		}
		return all
	}).WithTimeout(timeout).Should(ConsistOf("RemediationFrozen", "RemediationResumed"), "each once")
}

// TestACoreThatEndsSoon after a time without one does not end what follows from that, nor reports it again; the annotation ends it. A core
// of which another was at work until a moment ago says nothing.
func TestACoreThatEndsSoon(t *testing.T) {
	g := NewWithT(t)
	c := initialized(t)

	options := freeze.DefaultOptions()
	options.Grace = time.Hour
	freezing(t, options, time.Now())
	g.Eventually(func() float64 { return frozen(t, freeze.CoreWasAwayReason) }).WithTimeout(timeout).Should(BeZero())
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) { g.Expect(condition(c, remediationAllowed)).To(Equal("absent")) })

	lastAtWork(t, time.Now().Add(-2*time.Hour))
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("False/" + freeze.CoreWasAwayReason))
		g.Expect(message(c, remediationAllowed)).
			To(MatchRegexp(`No Machine is replaced until \S+Z: no core was running from \S+Z to \S+Z, and Nodes get time`))
	})
	g.Eventually(func() float64 { return frozen(t, freeze.CoreWasAwayReason) }).WithTimeout(timeout).Should(BeNumerically(">=", 1))
	// An event is sent after the write that it is about, and one that a core has not sent before its end is lost.
	g.Eventually(func(g Gomega) []string { return reasonsOf(g, t, c) }).WithTimeout(timeout).Should(ContainElement("RemediationFrozen"))

	lastAtWork(t, time.Now())
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("False/" + freeze.CoreWasAwayReason))
		g.Expect(message(c, remediationAllowed)).To(ContainSubstring("except for one that ran only briefly"))
	})
	g.Eventually(func() float64 { return frozen(t, freeze.CoreWasAwayReason) }).WithTimeout(timeout).Should(BeNumerically(">=", 1))
	g.Expect(slices.DeleteFunc(reasonsOf(g, t, c), func(reason string) bool { return reason != "RemediationFrozen" })).
		To(HaveLen(1), "reported once")

	patched := c.DeepCopy()
	patched.Annotations = map[string]string{freeze.UnfreezeAnnotation: ""}
	g.Expect(core.Client.Patch(t.Context(), patched, client.MergeFrom(c))).To(Succeed())
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("True/RemediationAllowed"))
	})
	g.Eventually(func() float64 { return frozen(t, freeze.CoreWasAwayReason) }).WithTimeout(timeout).Should(BeZero())
	g.Eventually(func(g Gomega) []string { return reasonsOf(g, t, c) }).WithTimeout(timeout).Should(ContainElement("RemediationResumed"))
}

// initialized is a Cluster whose control plane was there before a core that starts now: what is of the same second counts as new.
func initialized(t *testing.T) *clusterv1.Cluster {
	t.Helper()
	namespace := core.Namespace(t)
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)}}
	core.Create(t, c)
	core.Kubeconfig(t, namespace, "c", core.Env.Kubeconfig)
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, clusterv1.ClusterControlPlaneInitializedCondition)).To(HavePrefix("True"))
		since := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition).LastTransitionTime
		g.Expect(time.Since(since.Time)).To(BeNumerically(">", time.Second), "it was there before the start of the next core")
	})
	return c
}

// lastAtWork restarts the core after one that was at work until then.
func lastAtWork(t *testing.T, at time.Time) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: coretest.Lease}}
	NewWithT(t).Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(lease), lease)).To(Succeed())
	renewed := metav1.NewMicroTime(at)
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &renewed, &renewed
	NewWithT(t).Expect(core.Client.Update(t.Context(), lease)).To(Succeed())
	core.Restart(t)
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
