package certificates

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/version"
)

// TestOperations_ServiceOfOtherNamespace_IsLeftAlone: with a name alone in the annotation, the core publishes only to webhooks in its own
// namespace, wherever it is installed. Otherwise two cores with one configuration would overwrite each other's authority forever.
func TestOperations_ServiceOfOtherNamespace_IsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	s := Settings{Secret: types.NamespacedName{Namespace: "team-a", Name: "certificate"}}
	for _, c := range []struct {
		annotation string
		marked     bool
		namespace  string
	}{
		{"certificate", true, "team-a"},
		{"team-a/certificate", true, ""},
		{"team-b/certificate", false, ""},
		{"other", false, ""},
		{"", false, ""},
	} {
		marked, namespace := s.marks(c.annotation)
		g.Expect(marked).To(Equal(c.marked), "%q", c.annotation)
		g.Expect(namespace).To(Equal(c.namespace), "%q", c.annotation)
	}

	in := func(namespace string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "core"}}
	}
	url := "https://localhost"
	configuration, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&admissionregistrationv1.ValidatingWebhookConfiguration{
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "own", ClientConfig: in("team-a")},
			{Name: "another core's", ClientConfig: in("team-b")},
			{Name: "by URL", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url}},
			{Name: "up to date", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: []byte("authority")}},
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	written := func(namespace string) (names []any) {
		operations, err := target{&unstructured.Unstructured{Object: configuration}, namespace}.operations([]byte("authority"))
		g.Expect(err).NotTo(HaveOccurred())
		for _, o := range operations {
			if o.Op == "test" {
				names = append(names, o.Value)
			}
		}
		return names
	}
	g.Expect(written("team-a")).To(Equal([]any{"own"}))
	g.Expect(written("")).To(Equal([]any{"own", "another core's", "by URL"}))

	ofCRD, err := target{metadata(version.CRDKind), "team-a"}.operations([]byte("authority"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ofCRD).To(ContainElement(operation{"test", "/spec/conversion/webhook/clientConfig/service/namespace", "team-a"}))
}

// TestPublish_CRDNotWritten: a CRD that is gone, or that no webhook of this core converts, needs no authority. A denial by a webhook is an
// error, whatever code it gives.
func TestPublish_CRDNotWritten(t *testing.T) {
	const denied = `admission webhook "x.example.com" denied the request: no`
	answer := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}}
	}
	for name, test := range map[string]struct {
		answer error
		failed bool
	}{
		"gone":                  {answer(http.StatusNotFound, metav1.StatusReasonNotFound, "x not found"), false},
		"not converted by it":   {answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "the server rejected our request"), false},
		"a denial as not found": {answer(http.StatusNotFound, "", denied), true},
		"a denial as invalid":   {answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, denied), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return test.answer
				},
			})
			err := (&Reconciler{client: server}).publish(t.Context(), []target{{object: metadata(version.CRDKind)}}, []byte("authority"))
			if !test.failed {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring("denied the request")))
		})
	}
}
