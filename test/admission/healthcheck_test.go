package admission_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // It is what is tested.
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestMachineHealthChecksAreTaken: in either version, paused or not. One that selects everything is refused with what to do.
func TestMachineHealthChecksAreTaken(t *testing.T) {
	serve(t)
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)
	check := plainCheck()
	check.Namespace = ns
	g.Expect(live.Create(ctx, check)).To(Succeed())
	old := &clusterv1beta1.MachineHealthCheck{ObjectMeta: named(ns, "old"), Spec: clusterv1beta1.MachineHealthCheckSpec{
		ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
	g.Expect(live.Create(ctx, old)).To(Succeed())
	all := plainCheck()
	all.Namespace, all.Name, all.Spec.Selector = ns, "all", metav1.LabelSelector{}
	g.Expect(live.Create(ctx, all)).To(MatchError(ContainSubstring("spec.selector: Required value")))
	g.Expect(live.Create(ctx, &clusterv1.MachineHealthCheck{ObjectMeta: named(ns, "none")})).NotTo(Succeed())
}
