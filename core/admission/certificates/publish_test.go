package certificates

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/version"
)

// stored is an API server with one configuration.
type stored struct {
	client.Reader
	webhooks []admissionregistrationv1.ValidatingWebhook
}

func (s stored) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	configuration, ok := object.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !ok {
		return fmt.Errorf("%T was not expected", object)
	}
	configuration.Webhooks = s.webhooks
	return nil
}

// TestWhoseWebhooks: by a name alone the core publishes in what leads to its own namespace, wherever it is installed; two cores with one
// configuration between them would else overwrite each other's authorities for ever.
func TestWhoseWebhooks(t *testing.T) {
	g := NewWithT(t)
	s := Settings{Secret: types.NamespacedName{Namespace: "team-a", Name: "certificate"}}
	for _, c := range []struct {
		annotation string
		marked     bool
		beside     string
	}{
		{"certificate", true, "team-a"},
		{"team-a/certificate", true, ""},
		{"team-b/certificate", false, ""},
		{"other", false, ""},
		{"", false, ""},
	} {
		marked, beside := s.marks(c.annotation)
		g.Expect(marked).To(Equal(c.marked), "%q", c.annotation)
		g.Expect(beside).To(Equal(c.beside), "%q", c.annotation)
	}

	in := func(namespace string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "core"}}
	}
	url := "https://localhost"
	p := publisher{live: stored{webhooks: []admissionregistrationv1.ValidatingWebhook{
		{Name: "own", ClientConfig: in("team-a")},
		{Name: "another core's", ClientConfig: in("team-b")},
		{Name: "by URL", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url}},
	}}}
	written := func(beside string) (names []any) {
		operations, err := p.operations(t.Context(), target{kind: "ValidatingWebhookConfiguration", beside: beside}, []byte("authority"))
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

	ofCRD, err := p.operations(t.Context(), target{kind: version.CRDKind.Kind, beside: "team-a"}, []byte("authority"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ofCRD).To(ContainElement(operation{"test", "/spec/conversion/webhook/clientConfig/service/namespace", "team-a"}))
}

// TestAPublicationThatIsNotWritten: a CRD that is gone, or that no webhook of this core converts, needs none; what a webhook denies is
// missing there, whatever code it gives.
func TestAPublicationThatIsNotWritten(t *testing.T) {
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
			_, err := publisher{client: server}.publish(t.Context(), []target{{kind: version.CRDKind.Kind, name: "x"}}, []byte("authority"))
			if !test.failed {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring("denied the request")))
		})
	}
}
