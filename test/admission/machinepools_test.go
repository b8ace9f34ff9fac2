package admission_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // It is what is tested.
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/testenv"
)

// TestMachinePoolsAreKnownAndRefused: a provider can list and watch them in both versions; creating one, which would have
// no effect, is refused.
func TestMachinePoolsAreKnownAndRefused(t *testing.T) {
	g := NewWithT(t)
	serve(t)
	ns := namespace(t)
	pool := func() *clusterv1.MachinePool {
		pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pool"}}
		pool.Spec.ClusterName = "c"
		pool.Spec.Template.Spec.ClusterName = "c"
		pool.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To("data")
		pool.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "g.example", Kind: "K", Name: "n"}
		return pool
	}
	g.Expect(live.Create(t.Context(), pool())).To(Succeed())
	old := &clusterv1beta1.MachinePoolList{}
	g.Expect(live.List(t.Context(), old, client.InNamespace(ns))).To(Succeed())
	g.Expect(old.Items).To(HaveLen(1))
	g.Expect(old.Items[0].Spec.ClusterName).To(Equal("c"))
	g.Expect(live.DeleteAllOf(t.Context(), &clusterv1.MachinePool{}, client.InNamespace(ns))).To(Succeed())

	installPolicy(t, "config/core/base/machinepools.yaml")
	// The API server takes a moment to learn of a policy.
	g.Eventually(func() error {
		return live.Create(t.Context(), pool(), client.DryRunAll)
	}).WithTimeout(timeout).WithPolling(200 * time.Millisecond).Should(MatchError(ContainSubstring("use a MachineDeployment")))
}

// installPolicy installs the ValidatingAdmissionPolicy of a manifest, with its binding, until the test ends.
func installPolicy(t *testing.T, file string) {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(testenv.Root(), file))
	g.Expect(err).NotTo(HaveOccurred())
	documents := strings.Split(string(content), "---\n")
	policy, binding := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	g.Expect(yaml.UnmarshalStrict([]byte(documents[0]), policy)).To(Succeed())
	g.Expect(yaml.UnmarshalStrict([]byte(documents[1]), binding)).To(Succeed())
	for _, object := range []client.Object{policy, binding} {
		g.Expect(live.Create(t.Context(), object)).To(Succeed())
		t.Cleanup(func() { _ = live.Delete(context.WithoutCancel(t.Context()), object) })
	}
}
