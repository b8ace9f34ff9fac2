package coretest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rewrite has a webhook change metadata and spec of all objects of the kind and namespace of a probe, when they are created or updated as
// listed, as a policy of another team does. It waits until the webhook is in force, so it must change the metadata of the probe. end ends
// it.
func Rewrite(
	t *testing.T, c client.Client, probe client.Object, operations []admissionregistrationv1.OperationType,
	change func(*unstructured.Unstructured),
) (end func()) {
	t.Helper()
	g := NewWithT(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		object := &unstructured.Unstructured{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked := review.Request
		review.Request, review.Response = nil, &admissionv1.AdmissionResponse{UID: asked.UID, Allowed: true}
		listed := asked.Name == probe.GetName()
		for _, operation := range operations {
			listed = listed || string(operation) == string(asked.Operation)
		}
		if listed && object.UnmarshalJSON(asked.Object.Raw) == nil {
			change(object)
			patch, _ := json.Marshal([]map[string]any{
				{"op": "replace", "path": "/metadata", "value": object.Object["metadata"]},
				{"op": "replace", "path": "/spec", "value": object.Object["spec"]},
			})
			review.Response.Patch, review.Response.PatchType = patch, ptr.To(admissionv1.PatchTypeJSONPatch)
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	gvk, err := c.GroupVersionKindFor(probe)
	g.Expect(err).NotTo(HaveOccurred())
	of, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	g.Expect(err).NotTo(HaveOccurred())
	webhook := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "rewrite-" + strings.ToLower(gvk.Kind) + "-" + probe.GetNamespace()},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "rewrite.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: probe.GetNamespace()}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{gvk.Group}, APIVersions: []string{"*"}, Resources: []string{of.Resource.Resource},
				},
			}},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
	end = func() { _ = c.Delete(context.Background(), webhook) }
	t.Cleanup(end)
	g.Expect(c.Create(t.Context(), webhook)).To(Succeed())
	g.Eventually(func() bool {
		asked, ok := probe.DeepCopyObject().(client.Object)
		g.Expect(ok).To(BeTrue())
		g.Expect(c.Create(t.Context(), asked, client.DryRunAll)).To(Succeed())
		before, _ := json.Marshal([]any{probe.GetLabels(), probe.GetAnnotations(), probe.GetOwnerReferences()})
		after, _ := json.Marshal([]any{asked.GetLabels(), asked.GetAnnotations(), asked.GetOwnerReferences()})
		return string(before) != string(after)
	}).Should(BeTrue(), "the webhook should be in force")
	return end
}
