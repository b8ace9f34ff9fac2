package remote

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// TestProbe: what an API server may answer to the probe, by path, and what is concluded.
func TestProbe(t *testing.T) {
	for _, test := range []struct {
		name          string
		version, root int
		reason        string
		message       string
	}{
		{name: "an API server", version: 200, root: 403},
		{name: "a server without the version, as upstream's in-memory one", version: 404, root: 200},
		{name: "a load balancer without a backend", version: 404, root: 404, reason: Unreachable, message: "404"},
		{name: "an API server that starts", version: 503, root: 503, reason: Unreachable, message: "503"},
		{name: "refused credentials", version: 401, root: 401, reason: Unauthorized, message: "credentials"},
		{name: "an identity without any right", version: 403, root: 403, reason: Unauthorized, message: "listing Nodes"},
		{name: "an identity that may not read the version", version: 403, root: 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/version" {
					w.WriteHeader(test.version)
					return
				}
				w.WriteHeader(test.root)
			}))
			defer server.Close()
			connection, err := newConnection(
				types.NamespacedName{Namespace: "default", Name: "probed"},
				kubeconfig{config: &rest.Config{Host: server.URL}},
				Options{Scheme: clientgoscheme.Scheme, QPS: -1, RequestTimeout: time.Minute}.withDefaults(),
			)
			g.Expect(err).NotTo(HaveOccurred())
			err = connection.answer(t.Context(), time.Minute)
			if test.reason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			var refused *NotConnectedError
			g.Expect(err).To(BeAssignableToTypeOf(refused))
			g.Expect(err).To(HaveField("Reason", test.reason))
			g.Expect(err).To(HaveField("Message", ContainSubstring(test.message)))
		})
	}
}
