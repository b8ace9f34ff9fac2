package admission_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/doccheck"
)

// TestReferenceOfMachineDrainRules compares the page with the definition, and has its examples admitted.
func TestReferenceOfMachineDrainRules(t *testing.T) {
	page := doccheck.Read(t, "docs/reference/machinedrainrule.md")
	page.CheckLinks(t)
	fields := doccheck.Fields(t, "config/core/crd/generated/cluster.x-k8s.io_machinedrainrules.yaml", "spec")
	doccheck.Compare(t, page, "fields", page.Keys(t, "Spec", "Field"), fields)
	serve(t)
	doccheck.Apply(t, live, corev1.NamespaceDefault, page.Examples(t, ""), client.DryRunAll)
}

// warnings are those of an API server.
type warnings struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// TestAPausedClusterIsWarnedOf: the API server takes a Cluster of nothing but paused: true and hands on the warning; what it warns of is
// true, and so is the remedy.
func TestAPausedClusterIsWarnedOf(t *testing.T) {
	serve(t)
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)
	heard := &warnings{}
	config := rest.CopyConfig(env.Config)
	config.WarningHandler = heard
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	g.Expect(err).NotTo(HaveOccurred())
	cluster := &clusterv1.Cluster{ObjectMeta: named(ns, "c"), Spec: clusterv1.ClusterSpec{Paused: ptr.To(true)}}
	g.Expect(c.Create(ctx, cluster)).To(Succeed())
	g.Expect(heard.texts).To(ConsistOf(ContainSubstring("unpause with paused: false")))

	remove := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/paused"}]`))
	g.Expect(c.Patch(ctx, cluster.DeepCopy(), remove)).NotTo(Succeed())
	heard.texts = nil
	domain := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"clusterNetwork":{"serviceDomain":"cluster.local"}}}`))
	g.Expect(c.Patch(ctx, cluster, domain)).To(Succeed())
	g.Expect(c.Patch(ctx, cluster, remove)).To(Succeed())
	g.Expect(heard.texts).To(BeEmpty())
}
