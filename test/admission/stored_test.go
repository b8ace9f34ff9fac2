package admission_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/admission"
	"millwright.dev/core/admission/certificates"
)

// TestStoredAsOldVersion: an installation that was upgraded has objects that are stored as v1beta1. They reach the
// core's own cache through the core's conversion, which must not wait for that cache.
func TestStoredAsOldVersion(t *testing.T) {
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)
	store := func(old bool) {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "machines.cluster.x-k8s.io"}}
		patch := fmt.Sprintf(
			`[{"op":"replace","path":"/spec/versions/0/storage","value":%t},{"op":"replace","path":"/spec/versions/1/storage","value":%t}]`,
			old,
			!old,
		)
		g.Expect(live.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, []byte(patch)))).To(Succeed())
	}
	s, err := launch(env.Config, port, certificates.Lifetimes{}, "")
	g.Expect(err).NotTo(HaveOccurred())
	trusted(t)
	store(true)
	defer store(false)
	machine := &clusterv1.Machine{ObjectMeta: named(ns, "m"), Spec: machineSpec()}
	g.Expect(live.Create(ctx, machine)).To(Succeed())
	// The API server takes up the change of the CRD at some time; what is written after that is stored as v1beta1, and
	// converted when it is read. Without a core nothing converts it.
	written := 0
	g.Eventually(func(g Gomega) {
		if s == nil {
			s, err = launch(env.Config, port, certificates.Lifetimes{}, "")
			g.Expect(err).NotTo(HaveOccurred())
		}
		written++
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"written":"%d"}}}`, written)
		g.Eventually(func() error { return live.Patch(ctx, machine, client.RawPatch(types.MergePatchType, []byte(patch))) }).
			WithTimeout(timeout).Should(Succeed())
		g.Expect(s.stop()).To(Succeed())
		s = nil
		g.Expect(live.Get(ctx, client.ObjectKeyFromObject(machine), machine)).NotTo(Succeed())
	}).WithTimeout(2*timeout).Should(Succeed(), "it is stored as v1beta1")
	store(false)

	for _, fresh := range []bool{false, true} {
		if fresh {
			// Installed over another core: neither the Secret nor an authority in a CRD is there when the caches fill.
			g.Expect(env.RemoveWebhooks(ctx)).To(Succeed())
			secret := &corev1.Secret{ObjectMeta: named("millwright-system", "millwright-core-webhook-certificate")}
			g.Expect(live.Delete(ctx, secret)).To(Succeed())
			g.Expect(env.InstallWebhooks(ctx, port)).To(Succeed())
		}
		s, err = launch(env.Config, port, certificates.Lifetimes{}, "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(func() error { return s.cached.Get(ctx, client.ObjectKeyFromObject(machine), machine) }).
			WithTimeout(timeout).
			Should(Succeed())
		g.Expect(s.stop()).To(Succeed())
	}
}

// TestRoundTrips converts many generated objects to v1beta1 and back, without an API server between.
func TestRoundTrips(t *testing.T) {
	g := NewWithT(t)
	to := handlers(t, func(mgr ctrl.Manager) error { return admission.Register(mgr, anyVersion) })
	for seed := range number(t, seedsEnv, 500) {
		r := rand.New(rand.NewPCG(uint64(seed), 2)) // Cases are to be replayed.
		c := generate(r)
		fillStatus(r, c.obj)
		c.obj.GetObjectKind().SetGroupVersionKind(clusterv1.GroupVersion.WithKind(c.kind))
		c.obj.SetUID("u")
		before, err := json.Marshal(c.obj)
		g.Expect(err).NotTo(HaveOccurred())
		after := convert(g, to, convert(g, to, before, "v1beta1"), "v1beta2")
		back, ok := c.obj.DeepCopyObject().(client.Object)
		g.Expect(ok).To(BeTrue())
		clean := newOf(back)
		g.Expect(json.Unmarshal(after, clean)).To(Succeed())
		if len(clean.GetAnnotations()) == 0 {
			clean.SetAnnotations(c.obj.GetAnnotations())
		}
		withoutDeprecated(clean)
		withoutDeprecated(c.obj)
		g.Expect(json.Marshal(clean)).To(MatchJSON(must(json.Marshal(c.obj))), "seed %d: %s %v", seed, c.kind, c.steps)
	}
}

func must(content []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return content
}

// newOf is an empty object of the same kind.
func newOf(obj client.Object) client.Object {
	empty, err := newScheme().New(obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		panic(err)
	}
	return empty.(client.Object)
}

// convert asks for another version of an object, as an API server does.
func convert(g *WithT, to http.Handler, object []byte, version string) []byte {
	review := apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
		Request: &apiextensionsv1.ConversionRequest{
			UID: "u", DesiredAPIVersion: "cluster.x-k8s.io/" + version, Objects: []runtime.RawExtension{{Raw: object}},
		},
	}
	r := httptest.NewRequest(http.MethodPost, "/convert", bytes.NewReader(must(json.Marshal(review))))
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	g.Expect(w.Code).To(Equal(http.StatusOK))
	review = apiextensionsv1.ConversionReview{}
	g.Expect(json.Unmarshal(w.Body.Bytes(), &review)).To(Succeed())
	g.Expect(review.Response.Result.Status).To(Equal(metav1.StatusSuccess), review.Response.Result.Message)
	return review.Response.ConvertedObjects[0].Raw
}
