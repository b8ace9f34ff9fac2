package manager

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestWhatTheMapperKnows is answered while an API server does not answer which resources another group has: the cache asks while it holds a
// lock that all its readers need.
func TestWhatTheMapperKnows(t *testing.T) {
	g := NewWithT(t)
	asked, over := make(chan struct{}, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var answer any
		switch request.URL.Path {
		case "/api":
			answer = metav1.APIVersions{}
		case "/apis":
			answer = metav1.APIGroupList{Groups: []metav1.APIGroup{{
				Name: "known.example.com", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "known.example.com/v1", Version: "v1"}},
			}}}
		case "/apis/known.example.com/v1":
			answer = metav1.APIResourceList{GroupVersion: "known.example.com/v1", APIResources: []metav1.APIResource{{
				Name: "things", SingularName: "thing", Namespaced: true, Kind: "Thing",
			}}}
		default:
			asked <- struct{}{}
			select {
			case <-request.Context().Done():
			case <-over: // The client would ask again if its connection ended.
			}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	defer close(over)
	mapper, err := mapperProvider(time.Hour)(&rest.Config{Host: server.URL}, &http.Client{})
	g.Expect(err).NotTo(HaveOccurred())
	known := schema.GroupKind{Group: "known.example.com", Kind: "Thing"}
	first, err := mapper.RESTMapping(known, "v1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.Resource.Resource).To(Equal("things"))

	go func() { _, _ = mapper.RESTMapping(schema.GroupKind{Group: "silent.example.com", Kind: "Thing"}, "v1") }()
	g.Eventually(asked).Should(Receive())
	again := make(chan *meta.RESTMapping, 1)
	go func() {
		mapping, _ := mapper.RESTMapping(known, "v1")
		again <- mapping
	}()
	g.Eventually(again).WithTimeout(5 * time.Second).Should(Receive(Equal(first)))
}
