package target_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"millwright.dev/core/target"
)

func TestCheckKubeconfig(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
		return path
	}
	tests := []struct{ name, value, problem string }{
		{"left out", "", ""},
		{"the cluster of the process", target.InCluster, ""},
		{"a file", file("good", string(env.Kubeconfig)), ""},
		{"none, as machine-controller-manager has it", "none", "Machine becomes a Node"},
		{"missing", filepath.Join(folder, "missing"), "no such file"},
		{"no kubeconfig", file("bad", "{secret"), "is not a kubeconfig"},
		{"no context", file("empty", `{"apiVersion":"v1","kind":"Config"}`), "no usable current context"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			err := target.CheckKubeconfig(test.value)
			if test.problem == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.problem)))
			g.Expect(err.Error()).NotTo(ContainSubstring("secret"), "nothing of the content is repeated")
		})
	}
}

// TestOneTargetForAll: with a kubeconfig of its own the core asks for no Secret, and notices a new file without waiting
// for the next probe.
func TestOneTargetForAll(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	path := filepath.Join(folder, "kubeconfig")
	replace := func(content []byte) {
		// As a volume does: the file is replaced, not written to.
		next := filepath.Join(folder, "next")
		g.Expect(os.WriteFile(next, content, 0o600)).To(Succeed())
		g.Expect(os.Rename(next, path)).To(Succeed())
	}
	replace(env.Kubeconfig)
	connections := target.New(target.Options{
		Kubeconfig: path, Scheme: clientgoscheme.Scheme, UserAgent: "test", QPS: -1, ProbeInterval: time.Hour,
	})
	defer connections.Close()
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- connections.WatchKubeconfig(ctx) }()
	defer func() {
		cancel()
		g.Expect(<-watched).To(Succeed())
	}()

	first := map[string]*target.Connection{}
	for _, name := range []string{"one", "other"} {
		key := types.NamespacedName{Namespace: "default", Name: name}
		connections.Ensure(t.Context(), key)
		g.Eventually(func() (err error) { first[name], err = connections.Get(key); return err }).WithTimeout(patience).Should(Succeed())
	}
	replace(append([]byte("# rotated\n"), env.Kubeconfig...))
	for name, before := range first {
		g.Eventually(func() bool {
			after, err := connections.Get(types.NamespacedName{Namespace: "default", Name: name})
			return err == nil && after != before
		}).WithTimeout(patience).Should(BeTrue())
	}
}

// TestNoWatchOutlivesItsCluster counts the watches that the API server serves.
func TestNoWatchOutlivesItsCluster(t *testing.T) {
	g := NewWithT(t)
	transport, err := rest.TransportFor(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	origin, err := url.Parse(env.Config.Host)
	g.Expect(err).NotTo(HaveOccurred())
	var watches atomic.Int32
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(origin) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			watches.Add(1)
			defer watches.Add(-1)
		}
		proxy.ServeHTTP(w, r)
	}))
	defer server.Close()
	connections := newConnections()
	defer connections.Close()
	const clusters = 5
	for i := range clusters {
		name := "watched-" + string(rune('a'+i))
		writeKubeconfig(t, name, kubeconfigFor(server.URL))
		connections.Ensure(t.Context(), types.NamespacedName{Namespace: "default", Name: name})
	}
	g.Eventually(watches.Load).WithTimeout(patience).Should(BeEquivalentTo(clusters), "one for each Cluster")
	for i := range clusters {
		connections.Remove(types.NamespacedName{Namespace: "default", Name: "watched-" + string(rune('a'+i))})
	}
	g.Eventually(watches.Load).WithTimeout(patience).Should(BeZero())
}
