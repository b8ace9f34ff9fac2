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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Deny has a webhook deny an operation on all objects of the kind and namespace of a probe, with that answer, and waits until it is in
// force: it denies the creation of the probe as well. allow ends it.
func (c *Core) Deny(t *testing.T, probe client.Object, operation admissionv1.Operation, answer metav1.Status) (allow func()) {
	t.Helper()
	g := NewWithT(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked := review.Request
		denied := asked.Operation == operation || asked.Operation == admissionv1.Create && asked.Name == probe.GetName()
		review.Request, review.Response = nil, &admissionv1.AdmissionResponse{UID: asked.UID, Allowed: !denied, Result: &answer}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	gvk, err := c.Client.GroupVersionKindFor(probe)
	g.Expect(err).NotTo(HaveOccurred())
	of, err := c.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	g.Expect(err).NotTo(HaveOccurred())
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "deny-" + strings.ToLower(string(operation)) + "-" + probe.GetNamespace()},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "deny.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: probe.GetNamespace()}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.OperationType(operation)},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{gvk.Group}, APIVersions: []string{"*"}, Resources: []string{of.Resource.Resource},
				},
			}},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
	allow = func() { _ = c.Client.Delete(context.Background(), webhook) }
	t.Cleanup(allow)
	c.Create(t, webhook)
	g.Eventually(func() error {
		asked, ok := probe.DeepCopyObject().(client.Object)
		g.Expect(ok).To(BeTrue())
		return c.Client.Create(t.Context(), asked, client.DryRunAll)
	}).Should(MatchError(ContainSubstring("denied the request")), "the webhook should be in force")
	return allow
}
