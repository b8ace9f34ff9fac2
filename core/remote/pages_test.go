package remote

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPagesOfNodes: an API server that speaks JSON only answers a list in pages, the last of which names no next one. All Nodes with a
// provider ID are found, each as its own page has it.
func TestPagesOfNodes(t *testing.T) {
	pages := map[string]corev1.NodeList{"": pageOf("second", "a", "b", ""), "second": pageOf("third", "", "b", "c"), "third": pageOf("", "d")}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.Query().Get("continue")
		asked = append(asked, at)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(pages[at])
	}))
	t.Cleanup(server.Close)
	g := NewWithT(t)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	live, err := client.New(&rest.Config{Host: server.URL}, client.Options{Scheme: clientgoscheme.Scheme, Mapper: mapper})
	g.Expect(err).NotTo(HaveOccurred())
	c := &Connection{client: live, options: realTime(time.Minute)}
	found, err := c.readNodes(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(asked).To(Equal([]string{"", "second", "third"}))
	names := map[string][]string{}
	for id, nodes := range found {
		for _, node := range nodes {
			g.Expect(node.Spec.ProviderID).To(Equal(id))
			names[id] = append(names[id], node.Name)
		}
	}
	g.Expect(names).To(Equal(map[string][]string{"a": {"second0"}, "b": {"second1", "third1"}, "c": {"third2"}, "d": {"0"}}))
}

// pageOf is a page of Nodes with these provider IDs, which are named by the next page and their place.
func pageOf(next string, ids ...string) corev1.NodeList {
	list := corev1.NodeList{}
	list.APIVersion, list.Kind, list.Continue = "v1", "NodeList", next
	for i, id := range ids {
		node := corev1.Node{}
		node.Name, node.Spec.ProviderID = next+string(rune('0'+i)), id
		list.Items = append(list.Items, node)
	}
	return list
}
