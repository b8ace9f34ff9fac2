package admission_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// ipam reads a manifest of an IPAM object into a namespace.
func ipam(t *testing.T, namespace, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
	object.SetNamespace(namespace)
	return object
}

const (
	claimV1Beta1 = `
apiVersion: ipam.cluster.x-k8s.io/v1beta1
kind: IPAddressClaim
metadata: {name: web-0}
spec:
  clusterName: c
  poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: pool}`
	addressV1Beta1 = `
apiVersion: ipam.cluster.x-k8s.io/v1beta1
kind: IPAddress
metadata: {name: web-0}
spec:
  address: 10.0.0.7
  prefix: 24
  gateway: 10.0.0.1
  claimRef: {name: web-0}
  poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: pool}`
	claimV1Alpha1 = `
apiVersion: ipam.cluster.x-k8s.io/v1alpha1
kind: IPAddressClaim
metadata: {name: web-1}
spec:
  poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: pool}`
)

// Providers that claim addresses, and those that fulfil the claims, read and write the kinds in each version.
func TestIPAM_EachVersion_IsServedAndConverted(t *testing.T) {
	g := NewWithT(t)
	serve(t)
	ns := namespace(t)
	for _, manifest := range []string{claimV1Beta1, addressV1Beta1, claimV1Alpha1} {
		object := ipam(t, ns, manifest)
		g.Expect(live.Create(t.Context(), object)).To(Succeed())
		for _, version := range []string{"v1alpha1", "v1beta1", "v1beta2"} {
			read := &unstructured.Unstructured{}
			read.SetAPIVersion("ipam.cluster.x-k8s.io/" + version)
			read.SetKind(object.GetKind())
			g.Expect(live.Get(t.Context(), client.ObjectKeyFromObject(object), read)).To(Succeed(), version)
			pool, _, err := unstructured.NestedString(read.Object, "spec", "poolRef", "kind")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pool).To(Equal("InClusterIPPool"), version)
		}
	}
}

// The rules are those of Cluster API's webhooks.
func TestIPAM_InvalidObject_IsRejected(t *testing.T) {
	g := NewWithT(t)
	serve(t)
	ns := namespace(t)
	installPolicy(t, "config/core/base/ipam.yaml")
	claim, address := ipam(t, ns, claimV1Beta1), ipam(t, ns, addressV1Beta1)
	for _, object := range []client.Object{claim, address} {
		g.Expect(live.Create(t.Context(), object)).To(Succeed())
	}
	set := func(object *unstructured.Unstructured, value any, fields ...string) *unstructured.Unstructured {
		changed := object.DeepCopy()
		g.Expect(unstructured.SetNestedField(changed.Object, value, fields...)).To(Succeed())
		return changed
	}
	other := func(value any, field string) func() error {
		changed := set(set(address, "web-2", "metadata", "name"), value, "spec", field)
		changed.SetResourceVersion("")
		return func() error { return live.Create(t.Context(), changed, client.DryRunAll) }
	}
	// The API server takes a moment to learn of a policy.
	rejected := func(write func() error, message string) {
		t.Helper()
		g.Eventually(write).WithTimeout(timeout).WithPolling(200 * time.Millisecond).Should(MatchError(ContainSubstring(message)))
	}
	rejected(other("10.0.0.300", "address"), "spec.address: 10.0.0.300 is not an IP address")
	rejected(other("gateway.example.com", "gateway"), "spec.gateway: gateway.example.com is not an IP address")
	rejected(other(int64(33), "prefix"), "spec.prefix: 33 is not a prefix length of 10.0.0.7")
	g.Expect(other("fd00::7", "address")()).To(Succeed())
	for object, field := range map[*unstructured.Unstructured]string{claim: "clusterName", address: "gateway"} {
		changed := set(object, "10.0.0.2", "spec", field)
		rejected(func() error { return live.Update(t.Context(), changed, client.DryRunAll) }, "is immutable")
	}
	// Finalizers and labels change while a provider fulfils a claim.
	labelled := set(claim, "b", "metadata", "labels", "a")
	g.Expect(live.Update(t.Context(), labelled)).To(Succeed())
}
