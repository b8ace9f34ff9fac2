package machinehealth_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/health"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
	"millwright.dev/test/testenv"
)

// target is the API server of the Cluster, which can hang or have its watches bring nothing.
func (w *world) target() *coretest.HangingTarget {
	w.t.Helper()
	target, err := coretest.NewHangingTarget(suite.Env.Config)
	w.G.Expect(err).NotTo(HaveOccurred())
	w.t.Cleanup(target.End)
	w.kubeconfig = target.Kubeconfig()
	return target
}

// reads distinguishes the live reads of the Node of a Machine from other requests.
func (w *world) reads(machine string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/nodes/"+w.nodeName(machine))
	}
}

// counted has the server count the live reads of the Node of a Machine.
func (w *world) counted(target *coretest.HangingTarget, machine string) *atomic.Int64 {
	number, is := &atomic.Int64{}, w.reads(machine)
	target.Hang(coretest.Hang{Holds: func(r *http.Request) bool {
		if is(r) {
			number.Add(1)
		}
		return false
	}})
	return number
}

// TestANodeThatIsWellAndIllInTheCache: a Node is not Ready, and well again before that has lasted for the timeout, which a watch that
// brings nothing does not say. Its Machine is not marked for remediation. One whose Node is still ill is, after one read.
func TestANodeThatIsWellAndIllInTheCache(t *testing.T) {
	const unhealthyAfter = 5 * time.Second
	w := newWorld(t)
	target := w.target()
	w.machine("a", "True")
	w.machine("b", "True")
	w.start()
	w.check("workers", func(c *clusterv1.MachineHealthCheck) {
		c.Spec.Checks.UnhealthyNodeConditions[0].TimeoutSeconds = ptr.To(int32(unhealthyAfter / time.Second))
	})
	w.becomes("a", succeeded, well)
	w.becomes("b", succeeded, well)
	reads := w.counted(target, "a")
	w.looked(func() { w.reports("a", "False", 0); w.reports("b", "False", 0) })
	target.Mute()
	w.reports("a", "True", 0)
	w.becomes("b", owner, waiting)
	w.G.Eventually(reads.Load).WithTimeout(workers.Timeout).Should(BeEquivalentTo(1))
	for range 3 {
		w.looked(func() { w.touch("a", time.Now().Format("150405.000000")) })
	}
	w.G.Expect(w.conditionOf("a", succeeded)).To(Equal(well))
	w.G.Expect(w.conditionOf("a", owner)).To(BeEmpty())
	w.G.Expect(reads.Load()).To(BeEquivalentTo(1), "rounds read nothing")
}

// TestANodeThatIsThereAndGoneInTheCache: the read that comes before its Machine is marked for remediation hangs. That holds up no Machine
// of another Cluster, and is reported with numbers and one event. Then the read finds the Node, and nothing is marked for remediation,
// although the cache does not have it.
func TestANodeThatIsThereAndGoneInTheCache(t *testing.T) {
	w := newWorld(t)
	target := w.target()
	w.other("d")
	inOther := func(m *clusterv1.Machine) {
		m.Spec.ClusterName = "d"
		m.Labels[clusterv1.ClusterNameLabel] = "d"
	}
	w.machine("a", "True")
	w.machine("b", "True", inOther)
	w.start()
	w.check("workers")
	w.check("others", func(c *clusterv1.MachineHealthCheck) { c.Spec.ClusterName = "d" })
	w.becomes("a", succeeded, well)
	w.becomes("b", succeeded, well)
	target.Hang(coretest.Hang{Holds: w.reads("a")})
	for _, name := range []string{"a", "b"} {
		w.G.Expect(direct.Delete(w.Ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.nodeName(name)}})).To(Succeed())
	}
	w.G.Eventually(func() int { return target.Held(http.MethodGet) }).WithTimeout(workers.Timeout).Should(BeNumerically(">", 0))
	target.Mute()
	w.becomes("b", owner, waiting)
	w.counts("workers", 1, 0, 0, "Unknown/NodesUnreadable")
	w.G.Expect(meta.FindStatusCondition(w.current("workers").Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition).
		Message).
		To(And(HavePrefix("1 unhealthy Machine not marked for remediation: "), ContainSubstring("GET of Node "+w.nodeName("a"))))
	w.G.Expect(coretest.Gauge(t, "millwright_healthcheck_held", "namespace", w.Namespace, "machinehealthcheck", "workers", "reason",
		"NodesUnreadable")).
		To(BeEquivalentTo(1))
	w.G.Expect(w.conditionOf("a", succeeded)).To(Equal(well))
	w.G.Eventually(func() int { return w.recorded("RemediationRestricted NodesUnreadable") }).Should(Equal(1))
	w.atRest()

	w.node("a", "True")
	target.Answer()
	w.counts("workers", 1, 1, 1, "True/RemediationAllowed")
	w.G.Expect(w.conditionOf("a", owner)).To(BeEmpty())
	w.atRest()
	w.G.Expect(w.conditionOf("a", succeeded)).To(Equal(well))
}

// other makes another Cluster, whose API server answers.
func (w *world) other(name string) {
	w.t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}}}
	w.Create(cluster)
	before := cluster.DeepCopy()
	for _, kind := range []string{clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition} {
		conditions.Set(&cluster.Status.Conditions, conditions.True(kind, "Done", ""), 1, time.Now())
	}
	w.G.Expect(direct.Status().Patch(w.Ctx, cluster, client.MergeFrom(before))).To(Succeed())
	w.Create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace,
			Name:      shared.SecretName(name),
			Labels:    map[string]string{clusterv1.ClusterNameLabel: name},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": suite.Env.Kubeconfig},
	})
}

// TestANodeThatMayNotBeRead: with a right to list Nodes and not to read one no Machine is handed over. Without a MachineHealthCheck an
// event says so, and the metric.
func TestANodeThatMayNotBeRead(t *testing.T) {
	w := newWorld(t)
	w.kubeconfig = w.kubeconfigWith("list", "watch")
	w.defaults = health.Defaults{HealthTimeout: time.Second}
	w.machine("a", "True")
	w.start()
	w.becomes("a", succeeded, well)
	w.reports("a", "False", 0)
	w.G.Eventually(func() float64 {
		return coretest.Gauge(t, "millwright_machines_unhealthy", "cluster", w.Namespace+"/"+workers.ClusterName, "reason", "NodesUnreadable")
	}).WithTimeout(workers.Timeout).Should(BeEquivalentTo(1))
	w.atRest()
	w.G.Expect(w.recorded("MachineNotJudged Node " + w.nodeName("a"))).To(Equal(1))
	w.G.Expect(w.conditionOf("a", owner)).To(BeEmpty())
}

// TestNodesThatCannotBeReadAreCounted: too few Machines are known to be healthy, and nothing can be read. That is reported with the number
// of Machines, the cause, the metric and one event.
func TestNodesThatCannotBeReadAreCounted(t *testing.T) {
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
		return coretest.Gauge(
			t,
			"millwright_healthcheck_held",
			"namespace",
			w.Namespace,
			"machinehealthcheck",
			"workers",
			"reason",
			"NodesUnreadable",
		)
	}
	w.G.Eventually(held).WithTimeout(workers.Timeout).Should(BeEquivalentTo(2))
	w.atRest()
	w.G.Expect(w.recorded("RemediationRestricted NodesUnreadable")).To(Equal(1))
}

// kubeconfigWith is that of a user who may do only this with Nodes.
func (w *world) kubeconfigWith(verbs ...string) []byte {
	w.t.Helper()
	config, err := clientcmd.Load(suite.Env.Kubeconfig)
	w.G.Expect(err).NotTo(HaveOccurred())
	user := testenv.User(w.t, direct, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: verbs}})
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	content, err := clientcmd.Write(*config)
	w.G.Expect(err).NotTo(HaveOccurred())
	return content
}

// TestANodeThatTheCacheHasNotSeen: a Machine has had no Node for too long by a cache whose watch does not deliver one.
func TestANodeThatTheCacheHasNotSeen(t *testing.T) {
	w := newWorld(t)
	target := w.target()
	w.defaults = health.Defaults{CreationTimeout: 10 * time.Second}
	w.machine("known", "True")
	w.start()
	w.becomes("known", succeeded, well)
	target.Mute()
	w.machine("a", "")
	w.machine("b", "")
	w.node("a", "True")
	for _, name := range []string{"a", "b"} {
		w.status(name, func(s *clusterv1.MachineStatus) { s.Initialization.InfrastructureProvisioned = ptr.To(true) })
	}
	w.becomes("b", succeeded, "False/NodeStartupTimeout")
	w.becomes("b", owner, waiting)
	w.atRest()
	w.G.Expect(w.conditionOf("a", owner)).To(BeEmpty())
	w.G.Expect(w.conditionOf("a", succeeded)).To(BeEmpty())
}
