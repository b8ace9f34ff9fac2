package remote

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shared "millwright.dev/contracts/remote"
)

// TestWhoIsWokenByAnAnswer: each request is sent over the connection once that is up, and its owner is woken where those of its kind are.
func TestWhoIsWokenByAnAnswer(t *testing.T) {
	g := NewWithT(t)
	connections := New(newNodesServer(t).options())
	answered := make(chan types.NamespacedName, 9)
	connections.OnAnswer(func(owner types.NamespacedName) { answered <- owner })
	c := connect(t, g, connections)
	patched := nodeAt("5", "patched")
	for name, test := range map[string]struct {
		verb string
		ask  func(Owner) (any, error)
	}{
		"a patch": {http.MethodPatch, func(o Owner) (any, error) {
			return c.PatchNode(o, NodePatch{Before: nodeAt("5", "first"), After: patched})
		}},
		"a deletion": {http.MethodDelete, func(o Owner) (any, error) { return nil, c.DeleteNode(o, patched) }},
		"a lookup":   {http.MethodGet, func(o Owner) (any, error) { return c.LookUpNodes(o, "p") }},
	} {
		_, err := test.ask(asking(name))
		g.Expect(err).To(And(BeAssignableToTypeOf(&PendingError{}), HaveField("Verb", test.verb)), name)
		g.Eventually(answered).WithTimeout(settling).Should(Receive(Equal(owner(name))), name)
		g.Expect(answered).To(BeEmpty(), name)
		if name == "a lookup" {
			found, err := test.ask(asking(name))
			g.Expect(err).NotTo(HaveOccurred(), name)
			g.Expect(found).To(ConsistOf(HaveField("Name", "n")), name)
		}
	}
	g.Expect(c.Load()).To(ConsistOf(HaveField("Verb", http.MethodPatch), HaveField("Verb", http.MethodDelete)))
}

// TestNodesThatMayNotBeReadAreAnEvent: since probes are answered, nothing else reports it.
func TestNodesThatMayNotBeReadAreAnEvent(t *testing.T) {
	g := NewWithT(t)
	connections := New(newNodesServer(t).options())
	turned := make(chan types.NamespacedName, 9)
	connections.OnConnectivity(func(cluster types.NamespacedName) { turned <- cluster })
	c := connect(t, g, connections)
	g.Eventually(turned).WithTimeout(settling).Should(Receive(), "it is connected")
	for range refusedLimit {
		g.Expect(turned).To(BeEmpty())
		c.nodes.reading.end(listing, forbidden(), 0)
	}
	g.Expect(turned).To(Receive(Equal(theCluster)))
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("not yours"))
}

// TestTheCacheOfNodes: it has what was written until the watch is as far, and all are notified of what the watch brings.
func TestTheCacheOfNodes(t *testing.T) {
	g := NewWithT(t)
	server := newNodesServer(t)
	connections := New(server.options())
	type change struct {
		cluster types.NamespacedName
		label   string
	}
	changes, answered := make(chan change, 9), make(chan types.NamespacedName, 9)
	connections.OnNode(func(cluster types.NamespacedName, node *corev1.Node) { changes <- change{cluster, node.Labels["l"]} })
	connections.OnAnswer(func(owner types.NamespacedName) { answered <- owner })
	c := connect(t, g, connections)
	notified := func(label string) {
		t.Helper()
		g.Eventually(changes).WithTimeout(settling).Should(Receive(Equal(change{theCluster, label})))
	}
	shows := func(label string) {
		t.Helper()
		node, err := c.Node("n")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node).To(HaveField("Labels", HaveKeyWithValue("l", label)))
		g.Expect(c.NodesWithProviderID("p")).To(ConsistOf(node))
		g.Expect(c.Nodes()).To(HaveLen(1))
	}
	notified("first")
	shows("first")
	node, err := c.Node("another")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(node).To(BeNil())
	g.Expect(c.NodesWithProviderID("another")).To(BeEmpty())

	server.set(nodeAt("10", "written"))
	_, err = c.PatchNode(asking("m"), NodePatch{Before: nodeAt("5", "first"), After: nodeAt("5", "written")})
	g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}))
	g.Eventually(answered).WithTimeout(settling).Should(Receive())
	shows("written")
	server.send(&watchEvent{watch.Modified, nodeAt("7", "of another before")})
	notified("of another before")
	shows("written")
	server.send(&watchEvent{watch.Deleted, nodeAt("7", "of another before")})
	notified("of another before")
	g.Expect(c.written.nodes).To(BeEmpty(), "nothing is kept of a Node that is gone")
	node, err = c.Node("n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(node).To(BeNil())
}

// TestAWatchThatBeganInAnOutageIsOpenedAgain once probes are answered, and one that was open before continues.
func TestAWatchThatBeganInAnOutageIsOpenedAgain(t *testing.T) {
	g := NewWithT(t)
	server := newNodesServer(t)
	connections := New(server.options())
	var turns atomic.Int32
	labels := make(chan string, 9)
	connections.OnUnanswered(func(types.NamespacedName) { turns.Add(1) })
	connections.OnNode(func(_ types.NamespacedName, node *corev1.Node) { labels <- node.Labels["l"] })
	connect(t, g, connections)
	g.Eventually(labels).WithTimeout(settling).Should(Receive(Equal("first")))
	opened := server.watches()
	outage := func(meanwhile func()) {
		before := turns.Load()
		server.down.Store(true)
		g.Eventually(turns.Load).WithTimeout(settling).Should(Equal(before + 1))
		meanwhile()
		server.down.Store(false)
		g.Eventually(turns.Load).WithTimeout(settling).Should(Equal(before + 2))
	}

	outage(func() {})
	server.send(&watchEvent{watch.Modified, nodeAt("6", "second")})
	g.Eventually(labels).WithTimeout(settling).Should(Receive(Equal("second")))
	g.Expect(server.watches()).To(Equal(opened))

	outage(func() {
		server.mute.Store(true)
		server.send(nil)
		g.Eventually(server.hanging.Load).WithTimeout(settling).Should(BeEquivalentTo(1))
		server.mute.Store(false)
	})
	g.Eventually(server.hanging.Load).WithTimeout(10 * time.Second).Should(BeZero())
	g.Eventually(server.watches).WithTimeout(settling).Should(Equal(opened + 1))
}

// TestClustersWithoutAConnection: nothing is there to be asked, withdrawn or read again.
func TestClustersWithoutAConnection(t *testing.T) {
	g := NewWithT(t)
	server := newNodesServer(t)
	connections := New(server.options())
	_, err := connections.Get(theCluster)
	g.Expect(err).To(BeAssignableToTypeOf(&shared.NotConnectedError{}))
	connections.Withdraw(theCluster, owner("m"))
	connections.renew(theCluster)
	_, err = connections.attach(&shared.Connection{Config: &rest.Config{Host: "no\nhost"}})
	g.Expect(err).To(MatchError(ContainSubstring("creating a client for Nodes")))

	plain := &Connections{Connections: shared.New(server.options())}
	defer plain.Close()
	plain.Ensure(t.Context(), theCluster)
	g.Eventually(func() error { _, err := plain.Get(theCluster); return err }).WithTimeout(settling).
		Should(MatchError("the connection to Cluster default/c has no cache of Nodes"))
}

// TestWhatIsWithdrawnIsNotSent: what waits for its turn is dropped when its owner needs it no more.
func TestWhatIsWithdrawnIsNotSent(t *testing.T) {
	g := NewWithT(t)
	connections := New(newNodesServer(t).options())
	c := connect(t, g, connections)
	c.patches.mu.Lock()
	c.patches.running = laneLimit
	c.patches.mu.Unlock()
	for _, name := range []string{"a", "b"} {
		_, err := c.PatchNode(asking(name), NodePatch{Before: nodeAt("5", "first"), After: nodeAt("5", "patched")})
		g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}))
	}
	connections.Withdraw(theCluster, owner("a"))
	g.Expect(c.Load()).To(ContainElement(And(HaveField("Verb", http.MethodPatch), HaveField("Waiting", 1))))
}

// TestWhatAConnectionIsCheckedFor: Nodes can be listed. What it lacks is distinguished from an API server that fails.
func TestWhatAConnectionIsCheckedFor(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		reason string
	}{
		"it may list them":     {nil, ""},
		"it may not":           {forbidden(), shared.Unauthorized},
		"it is not known":      {apierrors.NewUnauthorized("who"), shared.Unauthorized},
		"the API server fails": {apierrors.NewInternalError(errors.New("etcd")), shared.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := DirectConnection(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					return test.err
				},
			}))
			c.to = &shared.Connection{Config: &rest.Config{Host: "https://host:1"}}
			err := c.Check(t.Context())
			if test.reason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(And(HaveField("Reason", test.reason), MatchError(test.err)))
		})
	}
}
