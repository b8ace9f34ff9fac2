package remote_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/remote"
)

// TestOneTargetForAll: with a kubeconfig of its own the core asks for no Secret, and notices a new file without waiting
// for the next probe, also when its directory was removed, moved or replaced.
func TestOneTargetForAll(t *testing.T) {
	g := NewWithT(t)
	directory := filepath.Join(t.TempDir(), "directory")
	path := filepath.Join(directory, "kubeconfig")
	create := func() { g.Expect(os.Mkdir(directory, 0o700)).To(Succeed()) }
	create()
	replace := func(content []byte) {
		// As a volume does: the file is replaced, not written to.
		next := filepath.Join(directory, "next")
		g.Expect(os.WriteFile(next, content, 0o600)).To(Succeed())
		g.Expect(os.Rename(next, path)).To(Succeed())
	}
	replace(env.Kubeconfig)
	connections := remote.New(shared.Options{
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

	known := map[string]*remote.Connection{}
	for _, name := range []string{"one", "other"} {
		key := types.NamespacedName{Namespace: "default", Name: name}
		connections.Ensure(t.Context(), key)
		g.Eventually(func() (err error) { known[name], err = connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())
	}
	for _, step := range []struct {
		name string
		does func()
	}{
		{"the file is replaced", func() {}},
		{"the directory is removed and created again", func() { g.Expect(os.RemoveAll(directory)).To(Succeed()); create() }},
		{"the same, after a while", func() {
			g.Expect(os.RemoveAll(directory)).To(Succeed())
			g.Consistently(func() (err error) {
				_, err = connections.Get(types.NamespacedName{Namespace: "default", Name: "one"})
				return err
			}).
				WithTimeout(2*time.Second).Should(Succeed(), "a file that cannot be read changes nothing")
			create()
		}},
		{"another directory takes its place", func() { g.Expect(os.Rename(directory, directory+".old")).To(Succeed()); create() }},
		{"the file is replaced again", func() {}},
	} {
		step.does()
		replace(append([]byte("# "+step.name+"\n"), env.Kubeconfig...))
		for name, before := range known {
			g.Eventually(func() bool {
				after, err := connections.Get(types.NamespacedName{Namespace: "default", Name: name})
				known[name] = after
				return err == nil && after != before
			}).WithTimeout(timeout).Should(BeTrue(), step.name)
		}
	}
}

// TestNoWatchOutlivesItsCluster counts the watches that the API server serves.
func TestNoWatchOutlivesItsCluster(t *testing.T) {
	g := NewWithT(t)
	server := newCountedProxy(t)
	connections := newConnections()
	defer connections.Close()
	const clusters = 5
	for i := range clusters {
		name := "watched-" + string(rune('a'+i))
		writeKubeconfig(t, name, kubeconfigFor(server.URL))
		connections.Ensure(t.Context(), types.NamespacedName{Namespace: "default", Name: name})
	}
	g.Eventually(server.watches.Load).WithTimeout(timeout).Should(BeEquivalentTo(clusters), "one for each Cluster")
	for i := range clusters {
		connections.Remove(types.NamespacedName{Namespace: "default", Name: "watched-" + string(rune('a'+i))})
	}
	g.Eventually(server.watches.Load).WithTimeout(timeout).Should(BeZero())
}

// countedProxy serves the API server of the tests, and counts what reads Nodes.
type countedProxy struct {
	*httptest.Server
	watches, lists atomic.Int32
	// probes counts requests for the version; the next refusals of them get status, and nothing may list Nodes then.
	probes, refusals, status atomic.Int32
}

// refuse has the next probes be refused.
func (p *countedProxy) refuse(status, times int) {
	p.status.Store(int32(status))
	p.refusals.Store(int32(times))
}

// refuses reports whether a request is to be refused.
func (p *countedProxy) refuses(r *http.Request) bool {
	switch r.URL.Path {
	case "/version":
		p.probes.Add(1)
		return p.refusals.Add(-1) >= 0
	case "/api/v1/nodes":
		return r.URL.Query().Get("watch") == "" && p.refusals.Load() >= 0 && p.status.Load() == http.StatusForbidden
	}
	return false
}

func newCountedProxy(t *testing.T) *countedProxy {
	t.Helper()
	g := NewWithT(t)
	transport, err := rest.TransportFor(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	origin, err := url.Parse(env.Config.Host)
	g.Expect(err).NotTo(HaveOccurred())
	counted := &countedProxy{}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(origin) },
	}
	counted.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case counted.refuses(r):
			w.WriteHeader(int(counted.status.Load()))
			return
		case r.URL.Query().Get("watch") != "":
			counted.watches.Add(1)
			defer counted.watches.Add(-1)
		case r.URL.Path == "/api/v1/nodes":
			counted.lists.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		counted.CloseClientConnections()
		counted.Close()
	})
	return counted
}

// TestClustersOfOneTargetShareItsConnection: with one kubeconfig for all, fifty Clusters cost the API server one watch, and
// the core no more goroutines than one; the connection lives as long as one of them.
func TestClustersOfOneTargetShareItsConnection(t *testing.T) {
	g := NewWithT(t)
	proxy := newCountedProxy(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(path, kubeconfigFor(proxy.URL), 0o600)).To(Succeed())
	connections := remote.New(
		shared.Options{Kubeconfig: path, Scheme: clientgoscheme.Scheme, UserAgent: "test", QPS: -1, ProbeInterval: time.Hour},
	)
	defer connections.Close()
	const clusters = 50
	key := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("shared-%d", i)}
	}
	notified := sync.Map{}
	connections.OnConnectivity(func(cluster types.NamespacedName) { notified.Store(cluster, true) })
	var nodes sync.Map
	connections.OnNode(func(cluster types.NamespacedName, node *corev1.Node) {
		if node.Name == "shared" {
			nodes.Store(cluster, true)
		}
	})
	connect := func(i int) *remote.Connection {
		connections.Ensure(t.Context(), key(i))
		var connection *remote.Connection
		g.Eventually(func() (err error) { connection, err = connections.Get(key(i)); return err }).WithTimeout(timeout).Should(Succeed())
		return connection
	}
	_, err := connections.Get(key(0))
	g.Expect(err).To(HaveOccurred())
	first := connect(0)
	_, err = connections.Get(key(1))
	g.Expect(err).To(HaveOccurred(), "a Cluster whose turn has not come has no connection")
	before := runtime.NumGoroutine()
	for i := range clusters {
		g.Expect(connect(i)).To(BeIdenticalTo(first))
	}
	g.Expect(runtime.NumGoroutine()).To(BeNumerically("<=", before+clusters/2))
	g.Eventually(proxy.watches.Load).WithTimeout(timeout).Should(BeEquivalentTo(1), "it may begin after the list")
	g.Expect(proxy.lists.Load()).To(BeNumerically("<=", 2), "the check of the permission, and the cache if it does not stream")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	g.Expect(live.Create(t.Context(), node)).To(Succeed())
	defer func() { g.Expect(live.Delete(context.WithoutCancel(t.Context()), node)).To(Succeed()) }()
	for i := range clusters {
		g.Eventually(func() bool { _, ok := nodes.Load(key(i)); return ok }).WithTimeout(timeout).Should(BeTrue(), "each Cluster hears of Nodes")
		_, ok := notified.Load(key(i))
		g.Expect(ok).To(BeTrue(), "each Cluster is notified that it is connected")
	}

	for i := range clusters - 1 {
		connections.Remove(key(i))
		_, err := connections.Get(key(i))
		g.Expect(err).To(HaveOccurred())
	}
	last, err := connections.Get(key(clusters - 1))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(last).To(BeIdenticalTo(first))
	g.Consistently(proxy.watches.Load).Should(BeEquivalentTo(1), "one Cluster still uses it")
	connections.Remove(key(clusters - 1))
	g.Eventually(proxy.watches.Load).WithTimeout(timeout).Should(BeZero(), "nothing outlives the last Cluster")
}
