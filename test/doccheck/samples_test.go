package doccheck_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// The API server accepts each whole object of a kind of ours on each page, with the rules of its definition and no unknown fields.
func TestSamplesOfPages_AreAcceptedByTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	ctrl.SetLogger(klog.Background())
	env, err := testenv.Start(testenv.Options{CRDs: []testenv.CRDs{
		testenv.CoreCRDs, testenv.AWSCRDs, testenv.AzureCRDs, testenv.GCPCRDs, testenv.CloudConfigCRDs, testenv.ExampleCRDs,
	}})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(env.Stop()).To(Succeed()) })
	c, err := client.New(env.Config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "samples"}})).To(Succeed())
	applied := 0
	for _, file := range doccheck.Pages() {
		t.Run(file, func(t *testing.T) {
			for _, block := range doccheck.Read(t, file).Objects(t) {
				objects := ours(t, file, block)
				doccheck.Apply(t, c, "samples", objects, client.DryRunAll)
				applied += len(objects)
			}
		})
	}
	g.Expect(applied).To(BeNumerically(">", 50), "objects on all pages")
}

// ours are the objects of a block that are of kinds of Cluster API or of this project.
func ours(t *testing.T, file, block string) (objects []*unstructured.Unstructured) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(block)), len(block)+1)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatalf("%s: this is no YAML: %v\n%s", file, err, block)
		}
		group, _, _ := strings.Cut(object.GetAPIVersion(), "/")
		if strings.HasSuffix(group, "millwright.dev") || group == "cluster.x-k8s.io" {
			objects = append(objects, object)
		}
	}
}
