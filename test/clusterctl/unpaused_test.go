package clusterctl

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// unpaused: removing spec.paused, as clusterctl does at the end of a move, succeeds with each Cluster of our samples and pages. Where it
// would leave an empty spec it is refused.
func (i *installation) unpaused() {
	i.withoutWebhooks()
	nothing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": clusterv1.GroupVersion.String(), "kind": "Cluster",
		"metadata": map[string]any{"name": "nothing"}, "spec": map[string]any{}}}
	err := i.unpause("nothing", nothing)
	i.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "the check can fail: %v", err)
	found := map[string]int{}
	for source, objects := range i.written() {
		for _, cluster := range clusters(objects) {
			i.Expect(i.unpause(source, cluster)).To(Succeed(), "%s: Cluster %s needs a field in spec beside paused", source, cluster.GetName())
			found[strings.Split(source, "/")[0]]++
		}
	}
	i.Expect(found).To(And(HaveKeyWithValue("config", BeNumerically(">=", 1)), HaveKeyWithValue("docs", BeNumerically(">=", 6))))
}

// written are the objects that our samples and pages have, by the file that has them.
func (i *installation) written() map[string][]*unstructured.Unstructured {
	found := map[string][]*unstructured.Unstructured{}
	samples, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "samples", "*", "*.yaml"))
	i.Expect(err).NotTo(HaveOccurred())
	for _, sample := range samples {
		content, err := os.ReadFile(sample)
		i.Expect(err).NotTo(HaveOccurred())
		source, err := filepath.Rel(testenv.Root(), sample)
		i.Expect(err).NotTo(HaveOccurred())
		found[source] = i.objects(string(content))
	}
	for _, file := range doccheck.Pages() {
		for _, block := range doccheck.Read(i.t, file).Objects(i.t) {
			found[file] = append(found[file], i.objects(block)...)
		}
	}
	return found
}

// objects are those of a manifest.
func (i *installation) objects(manifest string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(manifest)), len(manifest)+1)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return found
		}
		i.Expect(err).NotTo(HaveOccurred(), manifest)
		found = append(found, object)
	}
}

// clusters are the Clusters among objects.
func clusters(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == "Cluster" && strings.HasPrefix(object.GetAPIVersion(), clusterv1.GroupVersion.Group+"/") {
			found = append(found, object)
		}
	}
	return found
}

// unpause creates a paused Cluster, in a namespace of its own, and removes spec.paused as clusterctl does.
func (i *installation) unpause(source string, cluster *unstructured.Unstructured) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "unpause-"}}
	i.Expect(i.client.Create(i.t.Context(), namespace)).To(Succeed())
	cluster = cluster.DeepCopy()
	cluster.SetNamespace(namespace.Name)
	i.Expect(unstructured.SetNestedField(cluster.Object, true, "spec", "paused")).To(Succeed())
	i.Expect(i.client.Create(i.t.Context(), cluster, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed(), source)
	return i.client.Patch(i.t.Context(), cluster, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":null}}`)))
}

// withoutWebhooks removes the core's, which nothing answers here.
func (i *installation) withoutWebhooks() {
	for _, kind := range []string{"validating", "mutating"} {
		i.run(`kubectl delete ` + kind + `webhookconfiguration millwright-core --ignore-not-found`)
	}
}
