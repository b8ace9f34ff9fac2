package remote

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// noticed has the Clusters that subscribers were called for.
type noticed struct {
	mutex    sync.Mutex
	clusters map[types.NamespacedName]int
}

func notices(connections *Connections) *noticed {
	n := &noticed{clusters: map[types.NamespacedName]int{}}
	connections.OnConnectivity(func(cluster types.NamespacedName) {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		n.clusters[cluster]++
	})
	return n
}

func (n *noticed) of(cluster types.NamespacedName) int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.clusters[cluster]
}

// TestOneKubeconfigForAll: the Clusters share one connection, each from when it has joined, and it lasts as long as one of them.
func TestOneKubeconfigForAll(t *testing.T) {
	g := NewWithT(t)
	server, attach := newTarget(t), beside{}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(file, []byte(kubeconfigFor(server.URL)), 0o600)).To(Succeed())
	attaching, attached := attaching(attach)
	connections := New(Options{Kubeconfig: file, Scheme: clientgoscheme.Scheme, QPS: -1, Attach: attaching})
	t.Cleanup(connections.Close)
	heard := notices(connections)
	one, two := types.NamespacedName{Namespace: "default", Name: "one"}, types.NamespacedName{Namespace: "default", Name: "two"}
	is := func(cluster types.NamespacedName) bool {
		_, err := connections.Get(cluster)
		return err == nil
	}

	connections.Ensure(t.Context(), one)
	shared := connected(g, connections, one)
	g.Eventually(func() int { return heard.of(one) }).Should(Equal(1))
	g.Expect(is(two)).To(BeFalse(), "it has not joined")
	g.Expect(connections.LastSuccess(two)).To(Equal(connections.started))
	g.Expect(connections.LastSuccess(one)).To(BeTemporally(">", connections.started))
	g.Expect(connections.KubeconfigError(two)).To(BeEmpty())
	g.Expect(heard.of(two)).To(BeZero())

	connections.Ensure(t.Context(), two)
	g.Expect(connections.Get(two)).To(BeIdenticalTo(shared))
	g.Expect(heard.of(two)).To(Equal(1), "it is connected by joining alone")
	connections.Ensure(t.Context(), two)
	g.Expect(heard.of(two)).To(Equal(1), "it had joined")
	g.Expect(shared.Clusters()).To(ConsistOf(one, two))
	shared.NotifyConnectivity()
	g.Expect([]int{heard.of(one), heard.of(two)}).To(Equal([]int{2, 2}))

	connections.Remove(one)
	g.Expect(is(one)).To(BeFalse())
	g.Expect(connections.Get(two)).To(BeIdenticalTo(shared))
	g.Expect(closed(shared.ended)).To(BeFalse())
	connections.Remove(two)
	g.Expect(is(two)).To(BeFalse())
	g.Eventually(func() bool { return closed(shared.ended) }).Should(BeTrue())
	g.Expect(attached.Load()).To(BeEquivalentTo(1))
}

// fileOf writes a kubeconfig as a volume does: the file is replaced, not written to.
func fileOf(g *WithT, file, content string) {
	next := file + ".next"
	g.Expect(os.WriteFile(next, []byte(content), 0o600)).To(Succeed())
	g.Expect(os.Rename(next, file)).To(Succeed())
}

// TestAFileThatChanges is noticed at once, each time, also when it did so before the watch began. One that cannot be used changes nothing.
func TestAFileThatChanges(t *testing.T) {
	g := NewWithT(t)
	servers := []*target{newTarget(t), newTarget(t), newTarget(t)}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	fileOf(g, file, kubeconfigFor(servers[0].URL))
	connections := New(Options{Kubeconfig: file, Scheme: clientgoscheme.Scheme, QPS: -1, MinRetry: time.Millisecond, ProbeInterval: time.Hour})
	t.Cleanup(connections.Close)
	connections.Ensure(t.Context(), theCluster)
	reaches := func(server *target) {
		t.Helper()
		g.Eventually(func() string { return connected(g, connections, theCluster).Server() }).Should(Equal(server.Listener.Addr().String()))
	}
	reaches(servers[0])
	fileOf(g, file, kubeconfigFor(servers[1].URL))

	watched := make(chan error, 1)
	go func() { watched <- connections.WatchKubeconfig(t.Context()) }()
	reaches(servers[1])
	fileOf(g, file, kubeconfigFor(servers[2].URL))
	reaches(servers[2])
	fileOf(g, file, "broken")
	g.Consistently(func() string { return connections.KubeconfigError(theCluster) }, 100*time.Millisecond).Should(BeEmpty())
	fileOf(g, file, kubeconfigFor(servers[1].URL))
	reaches(servers[1])
	g.Expect(watched).NotTo(Receive())
}

// TestWhatIsWatched: there is no file to watch where each Cluster has a kubeconfig of its own, or the process has it. That a file cannot be
// watched ends the manager.
func TestWhatIsWatched(t *testing.T) {
	for name, test := range map[string]struct {
		kubeconfig string
		fails      bool
	}{
		"Secrets": {}, "that of the process": {kubeconfig: InCluster},
		"no directory": {filepath.Join(t.TempDir(), "missing", "kubeconfig"), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			connections := New(Options{Kubeconfig: test.kubeconfig, Scheme: clientgoscheme.Scheme})
			t.Cleanup(connections.Close)
			watched := make(chan error, 1)
			go func() { watched <- connections.WatchKubeconfig(t.Context()) }()
			var err error
			g.Eventually(watched).Should(Receive(&err))
			g.Expect(err != nil).To(Equal(test.fails), "%v", err)
		})
	}
}

// TestAFileThatChangesWithoutANotice, as when a link above its directory leads elsewhere, is read again within a minute.
func TestAFileThatChangesWithoutANotice(t *testing.T) {
	p := newProbed(t)
	before, err := p.Get(p.key)
	p.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(p.options.Kubeconfig)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(os.WriteFile(p.options.Kubeconfig, append([]byte("# another one\n"), content...), 0o600)).To(Succeed())
	p.pass(59*time.Second, time.Second)
	another := func() bool { after, err := p.Get(p.key); return err == nil && after != before }
	p.Expect(another()).To(BeFalse())
	p.clock.Step(time.Second)
	p.Eventually(another).Should(BeTrue())
}
