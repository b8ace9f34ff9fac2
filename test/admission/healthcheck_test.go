package admission_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // It is what is tested.
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	"millwright.dev/core/admission/validate"
	"millwright.dev/test/testenv"
)

// TestMachineHealthChecksAreRefused: in either version, since nothing would act on them, whether created so or unpaused. One that
// is there, from the time of another core or moved here paused, can be changed, released and deleted.
func TestMachineHealthChecksAreRefused(t *testing.T) {
	serve(t)
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)
	check := plainCheck()
	check.Namespace, check.Annotations = ns, nil
	g.Expect(live.Create(ctx, check)).To(MatchError(ContainSubstring(validate.WithoutHealthChecks)))
	old := &clusterv1beta1.MachineHealthCheck{ObjectMeta: named(ns, "old"), Spec: clusterv1beta1.MachineHealthCheckSpec{
		ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
	g.Expect(live.Create(ctx, old)).To(MatchError(ContainSubstring(validate.WithoutHealthChecks)))

	unpausing(ctx, g, check, ContainSubstring(validate.WithoutHealthChecks))
}

// unpausing creates the check paused, and lets it go through what may become of it: it is changed, pauses no more only when
// it is being deleted, and goes. To unpause it before is refused in the words.
func unpausing(ctx context.Context, g *WithT, check *clusterv1.MachineHealthCheck, words types.GomegaMatcher) {
	check.Annotations, check.Finalizers = map[string]string{clusterv1.PausedAnnotation: ""}, []string{"example.com/held"}
	g.Expect(live.Create(ctx, check)).To(Succeed())
	patched := func(change func(*clusterv1.MachineHealthCheck)) error {
		changed := check.DeepCopy()
		change(changed)
		return live.Patch(ctx, changed, client.MergeFrom(check))
	}
	unpaused := func(c *clusterv1.MachineHealthCheck) { c.Annotations = nil }
	g.Expect(patched(unpaused)).To(MatchError(words))
	g.Expect(patched(func(c *clusterv1.MachineHealthCheck) { c.Spec.Checks.NodeStartupTimeoutSeconds = ptr.To[int32](300) })).To(Succeed())
	g.Expect(patched(func(c *clusterv1.MachineHealthCheck) { c.Labels = map[string]string{"a": "b"} })).To(Succeed())
	g.Expect(live.Delete(ctx, check)).To(Succeed())
	g.Expect(patched(unpaused)).To(Succeed())
	g.Expect(patched(func(c *clusterv1.MachineHealthCheck) { controllerutil.RemoveFinalizer(c, "example.com/held") })).To(Succeed())
	g.Expect(apierrors.IsNotFound(live.Get(ctx, client.ObjectKeyFromObject(check), check))).To(BeTrue())
}

// TestHealthCheckPolicy: where the core is installed without webhooks, a policy says the same.
func TestHealthCheckPolicy(t *testing.T) {
	serve(t)
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)
	for name, obj := range map[string]client.Object{
		"machinehealthchecks_policy.yaml":  &admissionregistrationv1.ValidatingAdmissionPolicy{},
		"machinehealthchecks_binding.yaml": &admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
	} {
		content, err := os.ReadFile(filepath.Join(testenv.Root(), "config/core/without-webhooks", name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(yaml.UnmarshalStrict(content, obj)).To(Succeed())
		g.Expect(live.Create(ctx, obj)).To(Succeed())
		defer func() { g.Expect(live.Delete(ctx, obj)).To(Succeed()) }()
	}
	check := plainCheck()
	check.Namespace, check.Annotations = ns, nil
	refused := And(ContainSubstring("ValidatingAdmissionPolicy 'millwright-core-machinehealthchecks'"), ContainSubstring(validate.WithoutHealthChecks))
	g.Eventually(func() error { return live.Create(ctx, check.DeepCopy()) }).WithTimeout(timeout).Should(MatchError(refused))
	unpausing(ctx, g, check, refused)
}
