package remote

import (
	"context"
	"net/http"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "millwright.dev/contracts/remote"
)

// Connection is a connection to one target cluster that was up when it was returned. It may break at any
// time; then requests fail and the Node cache keeps what it has read last.
type Connection struct {
	// Key names the connection: the Cluster object in the management cluster, or nothing when all Clusters share it.
	Key types.NamespacedName
	// Config reaches the API server. The pointer stays the same as long as the connection does; do not modify it.
	Config *rest.Config

	to *shared.Connection
	// client reads and writes live. It is for goroutines of this package alone, since an API server can take its time.
	client  client.Client
	options *shared.Options
	nodes   nodes
	// patches, deletes and lookups are the requests that callers have asked for.
	patches, deletes lane
	lookups          lookups
	written          written
	contests         contests
}

// newConnection prepares what is kept beside a connection; nothing is sent yet.
func newConnection(to *shared.Connection, notify func(*corev1.Node)) (*Connection, error) {
	core, err := corev1client.NewForConfig(to.WatchConfig())
	if err != nil {
		return nil, errors.Wrap(err, "creating a client for Nodes")
	}
	c := &Connection{Key: to.Key, Config: to.Config, to: to, client: to.Client(), options: to.Options()}
	c.nodes, err = newNodes(core.RESTClient(), c.options.Clock, func(node *corev1.Node, gone bool) {
		if gone {
			c.written.drop(node.Name)
		}
		notify(node)
	})
	return c, err
}

// subscribe has the owner of a request called when it has an answer, and turned when the API server begins or ceases to answer.
func (c *Connection) subscribe(answered func(types.NamespacedName), turned func()) {
	for verb, l := range map[string]*lane{http.MethodPatch: &c.patches, http.MethodDelete: &c.deletes} {
		l.verb, l.options, l.wake, l.turned = verb, c.options, answered, turned
	}
	c.nodes.reading.turned = turned
	c.lookups.options, c.lookups.wake, c.lookups.read = c.options, answered, c.readNodes
}

// Check lists one Node, so that a missing permission is reported instead of hidden in the retries of the informer.
func (c *Connection) Check(ctx context.Context) error {
	err := c.client.List(ctx, &corev1.NodeList{}, client.Limit(1))
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return c.to.Failed(shared.Unauthorized, "the kubeconfig does not allow listing Nodes", err)
	}
	return c.to.Failed(shared.Unreachable, "the API server does not list Nodes", err)
}

// Run allows requests, and reads and watches Nodes, until ctx ends.
func (c *Connection) Run(ctx context.Context) {
	c.patches.begin(ctx)
	c.deletes.begin(ctx)
	c.lookups.begin(ctx)
	c.nodes.informer.RunWithContext(ctx)
}

// HasSynced reports whether the cache has all Nodes.
func (c *Connection) HasSynced() bool { return c.nodes.informer.HasSynced() }

// Load returns how many requests there are, for each verb.
func (c *Connection) Load() []shared.Load {
	return []shared.Load{c.patches.load(), c.deletes.load()}
}

func (c *Connection) now() time.Time { return c.options.Clock.Now() }

// Node returns the cached Node of that name, nil when there is none. It is shared: copy it before changing it.
func (c *Connection) Node(name string) (*corev1.Node, error) {
	node, err := c.nodes.get(name)
	if node != nil {
		node = c.written.newest(node)
	}
	return node, err
}

// Nodes returns all cached Nodes. They are shared: copy before changing.
func (c *Connection) Nodes() []*corev1.Node { return c.nodes.all() }

// NodesWithProviderID returns the cached Nodes with that provider ID; normally there is at most one.
// They are shared: copy before changing.
func (c *Connection) NodesWithProviderID(id string) ([]*corev1.Node, error) {
	nodes, err := c.nodes.withProviderID(id)
	for i, node := range nodes {
		nodes[i] = c.written.newest(node)
	}
	return nodes, err
}

func newNodes(getter cache.Getter, clk clock.Clock, notify func(node *corev1.Node, gone bool)) (nodes, error) {
	reading := newReading(cache.NewListWatchFromClient(getter, "nodes", metav1.NamespaceAll, fields.Everything()), clk)
	informer := cache.NewSharedIndexInformer(reading, &corev1.Node{}, 0, indexers)
	if err := informer.SetTransform(trimNode); err != nil {
		return nodes{}, errors.Wrap(err, "setting the transform of the Node cache")
	}
	if _, err := informer.AddEventHandler(nodeHandler(notify)); err != nil {
		return nodes{}, errors.Wrap(err, "adding the handler of the Node cache")
	}
	return nodes{informer: informer, reading: reading}, nil
}
