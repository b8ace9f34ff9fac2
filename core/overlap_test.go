package main

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest"
)

// TestCoresThatOverlap: where a user has forgotten to bound the first of two cores, both handle a namespace. They get in each other's way,
// but make no Machine too many, and delete none too many.
func TestCoresThatOverlap(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	env, c := startServer(t)
	g.Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "overlap"}})).To(Succeed())
	createMachineSet(t, c, "overlap", "both", kubeconfigOf(t, &coretest.Requests{}, env, "target"))
	for _, arguments := range [][]string{{"--namespace=overlap"}, {}} {
		t.Cleanup(runCore(t, c, kubeconfigOf(t, &coretest.Requests{}, env, "core"), append(arguments, "--webhook-port=0")...))
	}
	machines := map[string]bool{}
	for _, replicas := range []int{20, 40, 10} {
		set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "overlap", Name: "both"}}
		g.Expect(c.Patch(ctx, set, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)))).
			To(Succeed())
		there := func(g Gomega) {
			list := &clusterv1.MachineList{}
			g.Expect(c.List(ctx, list, client.InNamespace("overlap"))).To(Succeed())
			for i := range list.Items {
				machines[list.Items[i].Name] = true
			}
			g.Expect(list.Items).To(HaveLen(replicas))
		}
		g.Eventually(there).WithTimeout(timeout).Should(Succeed())
		g.Consistently(there).WithTimeout(2 * time.Second).Should(Succeed())
	}
	g.Expect(machines).To(HaveLen(40), "none was made, or deleted, that had to be made up for")
}
