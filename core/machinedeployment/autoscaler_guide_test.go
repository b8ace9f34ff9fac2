package machinedeployment

import (
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/doccheck"
)

const autoscalerGuide = "docs/guides/autoscaler.md"

// TestAutoscalerGuide has the API server take the examples, of the real kinds.
func TestAutoscalerGuide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page := doccheck.Read(t, autoscalerGuide)
	page.CheckLinks(t)
	for _, path := range []string{autoscalerGuide, guide} {
		doccheck.Apply(t, direct, w.Namespace, doccheck.Read(t, path).Examples(t, ""), client.DryRunAll)
	}
	documented := page.Keys(t, "Make a deployment a node group", "Annotation")
	for _, object := range page.Examples(t, "Make a deployment a node group") {
		for key := range object.GetAnnotations() {
			w.G.Expect(documented).To(ContainElement(key))
		}
	}
}

// TestAutoscalerFindsItsFields holds the CRDs against what the autoscaler's provider reads of them.
func TestAutoscalerFindsItsFields(t *testing.T) {
	g := NewWithT(t)
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	g.Expect(direct.List(t.Context(), crds)).To(Succeed())
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for i := range crds.Items {
		found[crds.Items[i].Name] = &crds.Items[i]
	}
	for _, kind := range []string{"machinedeployments", "machinesets"} {
		for _, version := range found[kind+".cluster.x-k8s.io"].Spec.Versions {
			g.Expect(version.Subresources.Scale).NotTo(BeNil(), "%s %s", kind, version.Name)
			g.Expect(version.Subresources.Scale.SpecReplicasPath).To(Equal(".spec.replicas"))
			g.Expect(version.Subresources.Scale.StatusReplicasPath).To(Equal(".status.replicas"))
			g.Expect(version.Subresources.Scale.LabelSelectorPath).To(HaveValue(Equal(".status.selector")))
		}
	}
	// It makes the resource out of the kind.
	for _, crd := range found {
		if strings.HasSuffix(crd.Spec.Names.Kind, clusterv1.TemplateSuffix) {
			g.Expect(crd.Spec.Names.Plural).To(Equal(strings.ToLower(crd.Spec.Names.Kind) + "s"))
		}
	}
	// What a Node of a template would have, to scale from zero.
	template := found["awsmachinetemplates.infrastructure.millwright.dev"]
	g.Expect(template).NotTo(BeNil())
	for _, version := range template.Spec.Versions {
		status := version.Schema.OpenAPIV3Schema.Properties["status"]
		g.Expect(status.Properties).To(HaveKey("capacity"))
		g.Expect(status.Properties["capacity"].AdditionalProperties.Schema.XIntOrString).To(BeTrue(), "quantities by resource")
		g.Expect(status.Properties["nodeInfo"].Properties).To(And(HaveKey("architecture"), HaveKey("operatingSystem")))
	}
}

// rollingOut is what the autoscaler's provider makes of the revisions of the sets that it finds by their label: a set
// that is not of the highest has replicas. It takes no Nodes of such a deployment.
func (w *world) rollingOut() bool {
	list := &clusterv1.MachineSetList{}
	w.G.Expect(direct.List(w.Ctx, list, client.InNamespace(w.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: "d"})).
		To(Succeed())
	highest := int64(0)
	revisions := map[string]int64{}
	for _, set := range list.Items {
		revision, err := strconv.ParseInt(set.Annotations[clusterv1.RevisionAnnotation], 10, 64)
		w.G.Expect(err).NotTo(HaveOccurred(), "the provider gives up at that")
		revisions[set.Name] = revision
		highest = max(highest, revision)
	}
	for _, set := range list.Items {
		if revisions[set.Name] < highest && ptr.Deref(set.Spec.Replicas, 0)+ptr.Deref(set.Status.Replicas, 0) > 0 {
			return true
		}
	}
	return false
}

// TestAutoscalerSeesRollouts and their end, though sets of earlier revisions are kept.
func TestAutoscalerSeesRollouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2, autoscaled("1", "5"))
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	w.G.Expect(w.rollingOut()).To(BeFalse())
	w.machines.hold(true)
	w.update(toTemplateB)
	w.Eventually(w.counts(2, 1, 2))
	w.G.Expect(w.rollingOut()).To(BeTrue())
	w.machines.hold(false)
	w.Eventually(w.settled(2, "b", "2"))
	w.G.Expect(w.allSets()).To(HaveLen(2))
	w.Eventually(func(g Gomega) { g.Expect(w.rollingOut()).To(BeFalse()) })
	for _, set := range w.allSets() {
		w.G.Expect(set.Annotations).NotTo(HaveKey(clusterv1.AutoscalerMinSizeAnnotation), "a set is no node group of its own")
	}
}
