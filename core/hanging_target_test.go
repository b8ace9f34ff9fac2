package main

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/safety/freeze"
	"millwright.dev/test/coretest"
)

// The target's API server stops answering, from the first byte or in mid-body, and a Node is not Ready for longer than allowed meanwhile.
// Its Machine is not replaced as soon as the API server answers again, but after the grace; the Cluster reports it.
func TestFreeze_TargetHangs_ReplacesAfterTheGrace(t *testing.T) {
	for _, way := range []coretest.Hang{
		coretest.HangAtFirstByte, {Name: coretest.HangInMidBody.Name, MidBody: true, Holds: func(*http.Request) bool { return true }},
	} {
		t.Run(way.Name, func(t *testing.T) { hangs(t, way) })
	}
}

func hangs(t *testing.T, way coretest.Hang) {
	const unhealthyAfter, grace = 5 * time.Second, 15 * time.Second
	g, ctx := NewWithT(t), t.Context()
	env, c := startServer(t)
	target, err := coretest.NewHangingTarget(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(target.End)
	t.Cleanup(runCore(t, c, kubeconfigOf(t, &coretest.Requests{}, env, "core"), "--webhook-port=0",
		"--machine-safety-apiserver-statuscheck-timeout=3s", "--machine-safety-recovery-grace="+grace.String(),
		"--machine-health-timeout="+unhealthyAfter.String()))
	t.Cleanup(target.Answer)
	deployment := createDeployment(t, c, target.Kubeconfig())
	g.Expect(c.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`)))).To(Succeed())
	before := awaitMachine(t, c, "")
	target.Hang(way)
	target.CloseClientConnections()
	awaitFreeze(t, freeze.TargetAPIServerUnreachableReason)
	notReady(t, c, before.Status.NodeRef.Name)
	deadline := time.Now().Add(unhealthyAfter)
	g.Eventually(time.Now).WithTimeout(timeout).Should(BeTemporally(">", deadline))

	answers := time.Now()
	target.Answer()
	target.CloseClientConnections() // What hung ends.
	awaitFreeze(t, freeze.RecoveringReason)
	g.Eventually(func(g Gomega) {
		cluster := &clusterv1.Cluster{}
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "c"}, cluster)).To(Succeed())
		g.Expect(meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)).
			To(HaveValue(HaveField("Reason", freeze.RecoveringReason)))
	}).WithTimeout(timeout).Should(Succeed())
	after := awaitMachine(t, c, before.Name)
	g.Expect(after.CreationTimestamp.Time).To(BeTemporally(">=", answers.Add(grace-time.Second)), "times are in whole seconds")
}

// awaitMachine waits for the one Machine, which is not that one, to be available.
func awaitMachine(t *testing.T, c client.Client, not string) (found clusterv1.Machine) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		list := &clusterv1.MachineList{}
		g.Expect(c.List(t.Context(), list)).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		found = list.Items[0]
		g.Expect(found.Name).NotTo(Equal(not))
		g.Expect(meta.IsStatusConditionTrue(found.Status.Conditions, clusterv1.AvailableCondition)).To(BeTrue())
	}).WithTimeout(2 * timeout).Should(Succeed())
	return found
}

// awaitFreeze waits until a Cluster is frozen for that reason.
func awaitFreeze(t *testing.T, reason string) {
	t.Helper()
	NewWithT(t).Eventually(func() float64 { return coretest.Gauge(t, "millwright_clusters_frozen", "reason", reason) }).
		WithTimeout(timeout).WithPolling(50*time.Millisecond).Should(BeNumerically(">=", 1), reason)
}

// notReady has a Node report that it is not Ready.
func notReady(t *testing.T, c client.Client, name string) {
	t.Helper()
	setReady(t, c, name, corev1.ConditionFalse, "")
}

// setReady has a Node report whether it is Ready.
func setReady(t *testing.T, c client.Client, name string, ready corev1.ConditionStatus, message string) {
	t.Helper()
	g := NewWithT(t)
	node := &corev1.Node{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: name}, node)).To(Succeed())
	before := node.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Kubelet", Message: message,
		LastTransitionTime: metav1.Now()}}
	g.Expect(c.Status().Patch(t.Context(), node, client.MergeFrom(before))).To(Succeed())
}
