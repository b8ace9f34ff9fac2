package cores

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

// TestReadyWithMetrics: a core that is ready and does not serve its metrics yet cannot be measured.
func TestReadyWithMetrics(t *testing.T) {
	g := NewWithT(t)
	served := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !served[request.URL.Path] {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	core := &Running{health: server.URL + "/readyz", diagnostics: server.URL + "/metrics"}
	g.Expect(core.ready(t.Context())).To(BeFalse())
	served["/readyz"] = true
	g.Expect(core.ready(t.Context())).To(BeFalse(), "its metrics are not served yet")
	served["/metrics"] = true
	g.Expect(core.ready(t.Context())).To(BeTrue())
}
