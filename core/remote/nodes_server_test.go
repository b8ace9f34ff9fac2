package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "millwright.dev/contracts/remote"
)

// theCluster is the Cluster of tests that need one.
var theCluster = types.NamespacedName{Namespace: "default", Name: "c"}

// nodesServer is an API server that speaks JSON only and has one Node; its watches send what the test feeds.
type nodesServer struct {
	*httptest.Server
	// down has probes refused, mute has requests to watch hang; hanging counts those.
	down, mute atomic.Bool
	hanging    atomic.Int32

	mu   sync.Mutex
	node *corev1.Node
	// feed is the watch that was opened last, opened counts them.
	feed   chan watchEvent
	opened int
}

type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object *corev1.Node    `json:"object"`
}

// nodeAt is a Node of some version.
func nodeAt(version, label string) *corev1.Node {
	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: version, Labels: map[string]string{"l": label}},
		Spec:       corev1.NodeSpec{ProviderID: "p"},
	}
}

// newNodesServer starts it. Whatever is read, patched or deleted, it answers with the Node.
func newNodesServer(t *testing.T) *nodesServer {
	t.Helper()
	s := &nodesServer{node: nodeAt("5", "first")}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *nodesServer) set(node *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node = node
}

// send sends an event to the watch that was opened last; nil ends it.
func (s *nodesServer) send(event *watchEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if event == nil {
		close(s.feed)
		return
	}
	s.feed <- *event
}

func (s *nodesServer) watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// ServeHTTP implements http.Handler.
func (s *nodesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/version" && s.down.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Query().Get("watch") != "":
		s.stream(w, r)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		var answer any = s.node
		if path.Base(r.URL.Path) == "nodes" {
			answer = &corev1.NodeList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: "5"},
				Items: []corev1.Node{*s.node},
			}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// stream sends the Node, the end of all Nodes, and what is fed.
func (s *nodesServer) stream(w http.ResponseWriter, r *http.Request) {
	if s.mute.Load() {
		s.hanging.Add(1)
		defer s.hanging.Add(-1)
		<-r.Context().Done()
		return
	}
	feed := make(chan watchEvent, 9)
	s.mu.Lock()
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		feed <- watchEvent{watch.Added, s.node}
		end := bookmark("5", true)
		end.TypeMeta = s.node.TypeMeta
		feed <- watchEvent{watch.Bookmark, end}
	}
	s.feed = feed
	s.opened++
	s.mu.Unlock()
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case event, open := <-feed:
			if !open {
				return
			}
			_ = json.NewEncoder(w).Encode(event)
		}
	}
}

// kubeconfigOf stands in for the Secrets of all Clusters.
type kubeconfigOf struct {
	client.Reader
	server string
}

func (k kubeconfigOf) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.(*corev1.Secret).Data = map[string][]byte{shared.SecretKey: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config",
		"current-context":"x","contexts":[{"name":"x","context":{"cluster":"x"}}],"clusters":[{"name":"x","cluster":{"server":%q}}]}`, k.server)}
	return nil
}

// options are those of connections to that server, which a probe that is not answered does not end.
func (s *nodesServer) options() shared.Options {
	return shared.Options{
		Secrets: kubeconfigOf{server: s.URL}, Scheme: clientgoscheme.Scheme, UserAgent: "test", QPS: -1,
		ProbeInterval: 20 * time.Millisecond, ProbeFailures: 1 << 30,
	}
}

// connect returns the connection of the Cluster once there is one.
func connect(t *testing.T, g *WithT, connections *Connections) (connection *Connection) {
	t.Helper()
	t.Cleanup(connections.Close)
	connections.Ensure(t.Context(), theCluster)
	g.Eventually(func() (err error) { connection, err = connections.Get(theCluster); return err }).WithTimeout(settling).Should(Succeed())
	return connection
}
