package certificates

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
