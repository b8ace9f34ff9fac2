package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/testenv"
)

// inKind is the name of the test's own cluster.
const inKind = "millwright-test"

// pullTimeout is how long the node image may take to be pulled.
const pullTimeout = 10 * time.Minute

// TestImagesInKind has real kubelets run the managers' images as the install manifests say, until all Deployments are available, and
// calls the core's webhooks, by their Service, with a Cluster. It needs a container engine that runs privileged containers.
func TestImagesInKind(t *testing.T) {
	engine, err := available()
	if err != nil {
		t.Skip("no cluster of kind can be created here: ", err)
	}
	privileged := func(program string, args ...string) (string, error) { return askFor(pullTimeout, program, args...) }
	if err := forbidden(engine, privileged); err != nil {
		t.Skip("no cluster of kind can be created here: ", err)
	}
	g, ctx := NewWithT(t), t.Context()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	name := []string{"-name", inKind, "-kubeconfig", kubeconfig}
	images := filepath.Join(testenv.Root(), "out", "test-images")
	t.Cleanup(func() {
		NewWithT(t).Expect(run(context.WithoutCancel(ctx), append([]string{"down"}, name...), io.Discard)).To(Succeed())
	})
	g.Expect(run(t.Context(), append([]string{"up"}, name...), os.Stdout)).To(Succeed())
	g.Expect(run(t.Context(), append([]string{"load", "-images", images}, name...), os.Stdout)).To(Succeed())

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	known := runtime.NewScheme()
	g.Expect(scheme.AddToScheme(known)).To(Succeed())
	g.Expect(clusterv1.AddToScheme(known)).To(Succeed())
	c, err := client.New(config, client.Options{Scheme: known})
	g.Expect(err).NotTo(HaveOccurred())
	var deployments []client.ObjectKey
	for _, file := range []string{
		"core/core-components.yaml", "bootstrap-cloudconfig/bootstrap-components.yaml", "infrastructure-aws/infrastructure-components.yaml",
		"infrastructure-azure/infrastructure-components.yaml", "infrastructure-gcp/infrastructure-components.yaml",
	} {
		for _, object := range documents(g, file) {
			if object.GetKind() == "Deployment" {
				deployments = append(deployments, client.ObjectKeyFromObject(object))
			}
			g.Eventually(func() error {
				return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("test"))
			}).Should(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
	}
	g.Expect(deployments).To(HaveLen(5))
	for _, key := range deployments {
		g.Eventually(func(g Gomega) {
			d := &appsv1.Deployment{}
			g.Expect(c.Get(ctx, key, d)).To(Succeed())
			g.Expect(d.Status.AvailableReplicas).To(BeEquivalentTo(1))
		}).WithTimeout(5*time.Minute).Should(Succeed(), key.String())
	}
	invalid := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: "invalid"}}
	invalid.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"nonsense"}
	g.Eventually(func() error { return c.Create(ctx, invalid) }).
		WithTimeout(2 * time.Minute).
		Should(MatchError(ContainSubstring("admission webhook")))
}

// documents are the objects of a file in out.
func documents(g *WithT, file string) []*unstructured.Unstructured {
	content, err := os.ReadFile(filepath.Join(testenv.Root(), "out", file))
	g.Expect(err).NotTo(HaveOccurred(), "run `make manifests`")
	var objects []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		document, err := reader.Read()
		if err != nil {
			g.Expect(err).To(MatchError(io.EOF))
			return objects
		}
		object := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal(document, &object.Object)).To(Succeed())
		objects = append(objects, object)
	}
}
