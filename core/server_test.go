package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest"
	"millwright.dev/test/testenv"
)

// sharedServer is the API server of the tests that leave nothing behind, from the first of them on. To start one takes longer than some
// tests.
var sharedServer *testenv.Env

func TestMain(m *testing.M) {
	code := m.Run()
	if sharedServer != nil {
		if err := sharedServer.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// startServer gives a test the API server, on which the core has the rights of its install manifest. It is empty, and is emptied when
// the test ends.
func startServer(t *testing.T) (*testenv.Env, client.Client) {
	t.Helper()
	if sharedServer == nil {
		sharedServer = newServer(t)
		grant(t, clientOf(t, sharedServer))
	}
	c := clientOf(t, sharedServer)
	t.Cleanup(func() { empty(t, sharedServer, c) })
	return sharedServer, c
}

// startServerAlone is startServer for a test that changes the API server itself, such as its webhooks.
func startServerAlone(t *testing.T) (*testenv.Env, client.Client) {
	t.Helper()
	env := newServer(t)
	t.Cleanup(func() { NewWithT(t).Expect(env.Stop()).To(Succeed()) })
	c := clientOf(t, env)
	grant(t, c)
	return env, c
}

func newServer(t *testing.T) *testenv.Env {
	t.Helper()
	ctrl.SetLogger(klog.Background())
	env, err := testenv.Start(testenv.Options{CRDs: []testenv.CRDs{testenv.CoreCRDs}, Objects: coretest.CRDs()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return env
}

func clientOf(t *testing.T, env *testenv.Env) client.Client {
	t.Helper()
	c, err := client.New(env.Config, client.Options{Scheme: newScheme(), Mapper: env.Mapper})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

// empty deletes what a test and its cores have created, whatever it waits for: all that is in namespaces, Nodes and policies. Namespaces
// stay, since no controller of theirs runs here, and so do the rights.
func empty(t *testing.T, env *testenv.Env, c client.Client) {
	t.Helper()
	g, ctx := NewWithT(t), context.WithoutCancel(t.Context())
	server, err := discovery.NewDiscoveryClientForConfig(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	groups, err := server.ServerPreferredResources()
	g.Expect(err).NotTo(HaveOccurred())
	// Until there is nothing: a recorder of events may write a last one after its core has ended.
	g.Eventually(func(g Gomega) {
		left := 0
		for _, group := range groups {
			for _, resource := range group.APIResources {
				if goes(resource) {
					version, err := schema.ParseGroupVersion(group.GroupVersion)
					g.Expect(err).NotTo(HaveOccurred())
					found, err := deleteAll(ctx, c, version.WithKind(resource.Kind))
					g.Expect(err).NotTo(HaveOccurred(), resource.Kind)
					left += found
				}
			}
		}
		g.Expect(left).To(BeZero())
	}).WithTimeout(timeout).Should(Succeed())
}

// goes reports whether objects of a kind are deleted when a test ends.
func goes(resource metav1.APIResource) bool {
	if !slices.Contains(resource.Verbs, "delete") || !slices.Contains(resource.Verbs, "list") {
		return false
	}
	switch resource.Kind {
	case "Service", "Endpoints", "EndpointSlice":
		return false
	case "Node", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return true
	}
	return resource.Namespaced
}

// deleteAll deletes the objects of a kind, but for those that Kubernetes has in namespaces of its own, and returns how many there were.
func deleteAll(ctx context.Context, c client.Client, kind schema.GroupVersionKind) (found int, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list); err != nil {
		return 0, err
	}
	for i := range list.Items {
		object := &list.Items[i]
		if strings.HasPrefix(object.Namespace, "kube-") {
			continue
		}
		found++
		object.SetGroupVersionKind(kind)
		if err := coretest.DeleteNow(ctx, c, object); err != nil {
			return found, err
		}
	}
	return found, nil
}
