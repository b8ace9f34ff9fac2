package main

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/test/coretest"
)

// TestAllIsReconciledEachSyncPeriod holds what the flag says: an event that was lost costs one period at most. A reconcile that finds
// nothing to do costs no write.
func TestAllIsReconciledEachSyncPeriod(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	env, c := startServer(t)
	sent := &coretest.Requests{}
	t.Cleanup(runCore(t, c, kubeconfigOf(t, sent, env, "core"), "--webhook-port=0", "--sync-period=1s"))
	deployment := createDeployment(t, c, kubeconfigOf(t, &coretest.Requests{}, env, "target"))
	g.Expect(c.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`)))).To(Succeed())
	g.Expect(c.Create(ctx, &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: "check"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: deployment.Spec.ClusterName,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"no": "machine"}},
		},
	})).To(Succeed())

	writes := func() (n int) {
		for _, request := range sent.Writes("") {
			if request.Verb != http.MethodGet {
				n++
			}
		}
		return n
	}
	const periods = 3
	before, written := map[string]int{}, -1
	g.Eventually(func(g Gomega) {
		if now := writes(); now != written {
			// Something was still to be done.
			before, written = reconciles(g), now
		}
		after := reconciles(g)
		for _, controller := range []string{
			"cluster", "machine", "machineset", "machinedeployment", "machinehealthcheck", "machinehealth",
			"overshoot-machinedeployment", "overshoot-machineset",
		} {
			g.Expect(after[controller]-before[controller]).To(BeNumerically(">=", periods), controller)
		}
	}).WithTimeout(timeout).Should(Succeed())
}

// reconciles are those of each controller in this process.
func reconciles(g Gomega) map[string]int {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	counts := map[string]int{}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" {
					counts[label.GetValue()] += int(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return counts
}
