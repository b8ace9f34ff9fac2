package manager

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TestDiscoveryIsBounded: an API server that does not answer which resources a group has holds up no caller of the mapper for ever.
func TestDiscoveryIsBounded(t *testing.T) {
	g := NewWithT(t)
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		asked <- struct{}{}
		<-request.Context().Done()
	}))
	defer server.Close()
	client := &http.Client{}
	mapper, err := mapperProvider(50*time.Millisecond)(&rest.Config{Host: server.URL}, client)
	g.Expect(err).NotTo(HaveOccurred())
	answered := make(chan error, 1)
	go func() {
		_, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Thing"})
		answered <- err
	}()
	g.Eventually(answered).Should(Receive(HaveOccurred()))
	g.Expect(asked).NotTo(BeEmpty())
	g.Expect(client.Timeout).To(BeZero(), "watches have no end")

	settings, err := parsed(g).Settings(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(settings.MapperProvider).NotTo(BeNil())
}
