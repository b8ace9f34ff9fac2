package machine_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/version"
)

// denyMachines has a webhook deny changes of Machines of the namespace, and a Machine named probe, with that answer.
func (f *fixture) denyMachines(answer metav1.Status) (allow func()) {
	f.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &answer}
		review.Response.Allowed = review.Request.Operation == admissionv1.Create && review.Request.Name != "probe"
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	f.t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "deny-" + f.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:              "deny.example.com",
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: ptr.To(server.URL), CABundle: authority},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{clusterv1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"machines"},
				},
			}},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
	probe := f.machine.DeepCopy()
	probe.ObjectMeta = metav1.ObjectMeta{Namespace: f.namespace, Name: "probe"}
	allow = func() { _ = core.Client.Delete(context.Background(), webhook) }
	f.t.Cleanup(allow)
	core.Create(f.t, webhook)
	f.Eventually(func() error { return core.Client.Create(f.t.Context(), probe.DeepCopy()) }).
		WithTimeout(timeout).Should(MatchError(ContainSubstring("denied the request")), "the webhook should be in force")
	return allow
}

// TestWhatAWebhookDeniesIsReported, whatever code and reason it gives. Many give neither, and the API server adds no reason.
func TestWhatAWebhookDeniesIsReported(t *testing.T) {
	t.Parallel()
	const why = "finalizers need a ticket"
	for name, answer := range map[string]metav1.Status{
		"a message alone":              {Message: why},
		"as an invalid request":        {Message: why, Code: http.StatusBadRequest},
		"as a conflict":                {Message: why, Code: http.StatusConflict},
		"as a conflict, by its reason": {Message: why, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict},
		"as a failure of its own":      {Message: why, Code: http.StatusInternalServerError},
		"as too many requests":         {Message: why, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, version.V1Beta2)
			allow := f.denyMachines(answer)
			f.createMachine()
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "Ready")).To(Equal("Unknown/InternalError"))
				g.Expect(message(m, "Ready")).To(ContainSubstring(`admission webhook "deny.example.com" denied the request: ` + why))
			})
			allow()
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(m.Finalizers).To(ContainElement(clusterv1.MachineFinalizer))
				g.Expect(message(m, "Ready")).NotTo(ContainSubstring("ticket"))
			})
		})
	}
}
