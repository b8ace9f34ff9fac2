package e2e

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/sandbox"
	"millwright.dev/test/sandbox/scenario"
)

// outage is how long the API server is away.
const outage = 30 * time.Second

// recovery is how long everything may take to continue afterwards: client-go waits ever longer between
// its attempts to watch, up to a minute when the API server has been away for half of one.
const recovery = 3 * time.Minute

// TestAPIServerOutage stops the API server for half a minute in the middle of a scale-up: nothing is
// lost, nothing is replaced, and what was under way completes.
func TestAPIServerOutage(t *testing.T) {
	w := sharedWorld(t, "outage")
	w.Expect(w.scenario.ApplySamples(w.ctx)).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 3)).To(Succeed())
	w.Expect(w.scenario.DeployWorkload(w.ctx, 6, 4)).To(Succeed())
	before := w.identities()
	w.checkHealth()
	w.Expect(w.sandbox.EC2.ClearCalls(w.ctx)).To(Succeed())
	w.Expect(w.scenario.Scale(w.ctx, 4)).To(Succeed())
	w.Eventually(func() ([]string, error) {
		calls, err := w.sandbox.EC2.Calls(w.ctx, "RunInstances")
		var tokens []string
		for _, call := range calls {
			tokens = append(tokens, call.ClientToken)
		}
		return tokens, err
	}).Should(HaveLen(1), "the fourth Machine is being launched")

	w.sandbox.Control.StopAPIServer()
	end := time.NewTimer(outage)
	defer end.Stop()
	select {
	case <-end.C:
	case <-w.ctx.Done():
	}
	w.Expect(w.sandbox.Check()).To(Succeed(), "no manager gives up")
	w.Expect(w.sandbox.Control.StartAPIServer(w.ctx)).To(Succeed())

	w.rewatch()
	w.Eventually(w.remediationAllowed).Should(Equal("False"))
	w.silentInGrace()
	w.endGrace()
	w.Eventually(w.remediationAllowed).Should(Equal("True"))
	w.Expect(w.scenario.AwaitRunning(w.ctx, 4)).To(Succeed())
	// An API server that has just started answers before it has read its roles.
	_, err := w.sandbox.Forbidden()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.scenario.AwaitWorkload(w.ctx, 6)).To(Succeed())
	after := w.identities()
	w.Expect(after).To(HaveLen(4))
	for uid, identity := range before {
		w.Expect(after).To(HaveKeyWithValue(uid, identity), "same Machine, same instance, same Node")
	}
	w.Expect(w.live()).To(HaveLen(4))
	terminated, err := w.sandbox.EC2.Calls(w.ctx, "TerminateInstances")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(terminated).To(BeEmpty(), "nothing was replaced in between")
	w.Expect(w.scenario.Watch.Violation()).NotTo(HaveOccurred())
}

// silentInGrace has a Node be silent for longer than the health check allows, like Nodes whose kubelets could not reach the API server, and
// then report again: the core sees it, and finds no Machine unhealthy.
func (w *world) silentInGrace() {
	w.t.Helper()
	all := w.machines()
	machine := all[slices.IndexFunc(all, func(m clusterv1.Machine) bool { return m.Status.NodeRef.IsDefined() })]
	condition := func(kind string) func(Gomega) string {
		return func(g Gomega) string {
			g.Expect(w.control.Get(w.ctx, client.ObjectKeyFromObject(&machine), &machine)).To(Succeed())
			found := meta.FindStatusCondition(machine.Status.Conditions, kind)
			g.Expect(found).NotTo(BeNil())
			return string(found.Status)
		}
	}
	w.fallSilent(machine.Status.NodeRef.Name)
	w.Eventually(condition(clusterv1.MachineNodeReadyCondition)).ShouldNot(Equal("True"))
	w.Consistently(condition(clusterv1.MachineHealthCheckSucceededCondition), 3*time.Second).Should(Equal("True"))
	w.setReady(machine.Status.NodeRef.Name, corev1.ConditionTrue, "KubeletReady")
	w.Eventually(condition(clusterv1.MachineNodeReadyCondition)).Should(Equal("True"))
}

// endGrace ends the grace as an operator does who has seen that all is well.
func (w *world) endGrace() {
	w.t.Helper()
	cluster := &clusterv1.Cluster{}
	w.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: w.machines()[0].Spec.ClusterName}, cluster)).To(Succeed())
	before := cluster.DeepCopy()
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, "safety.millwright.dev/unfreeze", "")
	w.Expect(w.control.Patch(w.ctx, cluster, client.MergeFrom(before))).To(Succeed())
}

// checkHealth replaces each Machine whose Node has not reported for a second. A Node that joins may take longer to be Ready.
func (w *world) checkHealth() {
	w.t.Helper()
	machine := w.machines()[0]
	condition := func(status corev1.ConditionStatus, seconds int32) clusterv1.UnhealthyNodeCondition {
		return clusterv1.UnhealthyNodeCondition{Type: corev1.NodeReady, Status: status, TimeoutSeconds: &seconds}
	}
	check := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "short-timeout"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: machine.Spec.ClusterName,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineDeploymentNameLabel: sandbox.SampleDeployment}},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				condition(corev1.ConditionUnknown, 1), condition(corev1.ConditionFalse, 60),
			}},
		},
	}
	w.Expect(w.control.Create(w.ctx, check)).To(Succeed())
	w.awaitHealthy(check, 3)
}

// remediationAllowed is the status of the Cluster's condition, "absent" before the first freeze.
func (w *world) remediationAllowed(g Gomega) string {
	cluster := &clusterv1.Cluster{}
	g.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: w.machines()[0].Spec.ClusterName}, cluster)).To(Succeed())
	found := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	if found == nil {
		return "absent"
	}
	return string(found.Status)
}

// rewatch replaces the test's own watches, which would wait as long as those of the managers.
func (w *world) rewatch() {
	w.t.Helper()
	w.Expect(w.scenario.Watch.Violation()).NotTo(HaveOccurred())
	var err error
	w.scenario, err = scenario.New(w.ctx, w.sandbox, scenario.Options{Namespace: w.namespace, Timeout: recovery})
	w.Expect(err).NotTo(HaveOccurred())
}
