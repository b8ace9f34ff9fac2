package remote

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/rewatch"
)

// Connection is a connection to one target cluster that stood when it was handed out. It may break at any
// time; then requests fail and the Node cache keeps what it saw last.
type Connection struct {
	// Key names the connection: the Cluster object in the management cluster, or nothing when all Clusters share it.
	Key types.NamespacedName
	// Config reaches the API server. The pointer stays the same as long as the connection does; do not modify it.
	Config *rest.Config

	// client reads and writes live. It is for goroutines of this package alone, since an API server can take its time.
	client  client.Client
	options *Options
	nodes   nodes
	// patches, deletes and lookups are the requests that callers have asked for.
	patches, deletes lane
	lookups          lookups
	written          written
	contests         contests
	probe            rest.Interface
	hash             string
}

// name names the target cluster in metrics.
func (c *Connection) name() string {
	if c.Key.Name == "" {
		return "all"
	}
	return c.Key.String()
}

// server is the host and port of the API server. The rest of its URL may hold credentials.
func (c *Connection) server() string {
	at, _, err := rest.DefaultServerUrlFor(c.Config)
	if err != nil {
		return ""
	}
	return at.Host
}

// failed says why there is no connection to the API server.
func (c *Connection) failed(reason, message string, cause error) *NotConnectedError {
	return &NotConnectedError{Reason: reason, Message: message, Server: c.server(), cause: cause}
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

// NodesWithProviderID returns the cached Nodes with that provider ID; normally there is at most one.
// They are shared: copy before changing.
func (c *Connection) NodesWithProviderID(id string) ([]*corev1.Node, error) {
	nodes, err := c.nodes.withProviderID(id)
	for i, node := range nodes {
		nodes[i] = c.written.newest(node)
	}
	return nodes, err
}

// newConnection prepares a connection; nothing is sent yet.
func newConnection(key types.NamespacedName, from kubeconfig, options Options, notify func(*corev1.Node)) (*Connection, error) {
	config := rest.CopyConfig(from.config)
	config.UserAgent = options.UserAgent
	config.QPS, config.Burst = options.QPS, options.Burst
	config.Wrap(bounded(maxAnswer, watchWindow))
	requests := rest.CopyConfig(config)
	requests.Timeout = options.RequestTimeout
	httpClient, err := rest.HTTPClientFor(requests)
	if err != nil {
		return nil, errors.Wrap(err, "making an HTTP client")
	}
	live, err := liveClient(requests, httpClient, options)
	if err != nil {
		return nil, err
	}
	// The informer's requests are watches, so they have no timeout of their own; and they are few, so they do
	// not queue behind the limit of the others.
	watching := rest.CopyConfig(config)
	// A server that speaks JSON only may answer so, too.
	watching.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	watching.ContentType = runtime.ContentTypeProtobuf
	watching.QPS = -1
	core, err := corev1client.NewForConfig(watching)
	if err != nil {
		return nil, errors.Wrap(err, "making a client for Nodes")
	}
	probing := rest.CopyConfig(requests)
	probing.QPS = -1
	prober, err := corev1client.NewForConfigAndClient(probing, httpClient)
	if err != nil {
		return nil, errors.Wrap(err, "making a client for probes")
	}
	c := &Connection{Key: key, Config: config, client: live, options: &options, probe: prober.RESTClient(), hash: from.hash}
	c.nodes, err = newNodes(core.RESTClient(), func(node *corev1.Node, gone bool) {
		if gone {
			c.written.drop(node.Name)
		}
		notify(node)
	})
	return c, err
}

func liveClient(config *rest.Config, httpClient *http.Client, options Options) (client.Client, error) {
	// The kinds that are used in target clusters are built in, so the mapping is known without discovery.
	live, err := client.New(config, client.Options{Scheme: options.Scheme, Mapper: options.mapper, HTTPClient: httpClient})
	return live, errors.Wrap(err, "making a client")
}

func newNodes(getter cache.Getter, notify func(node *corev1.Node, gone bool)) (nodes, error) {
	informer := rewatch.NewInformer(
		cache.NewListWatchFromClient(getter, "nodes", metav1.NamespaceAll, fields.Everything()), &corev1.Node{}, 0, indexers)
	if err := informer.SetTransform(trimNode); err != nil {
		return nodes{}, errors.Wrap(err, "setting the transform of the Node cache")
	}
	if _, err := informer.AddEventHandler(nodeHandler(notify)); err != nil {
		return nodes{}, errors.Wrap(err, "adding the handler of the Node cache")
	}
	return nodes{informer: informer}, nil
}

// answer asks the API server for its version: the cheapest request that needs valid credentials and no permission.
// A server that does not know that path, such as the in-memory one of Cluster API's development provider, is asked
// for its root instead, as upstream's core does; the root alone would not do, since it needs a permission that not
// every identity has.
func (c *Connection) answer(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.probe.Get().AbsPath("/version").Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err):
		err = c.probe.Get().AbsPath("/").Do(ctx).Error()
	case apierrors.IsForbidden(err):
		// The credentials are accepted; that path need not be public. What is needed is to read Nodes.
		err = c.probe.Get().Resource("nodes").Param("limit", "1").Do(ctx).Error()
	}
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return c.failed(Unauthorized, "the kubeconfig does not allow to list Nodes", err)
	case apierrors.IsUnauthorized(err):
		return c.failed(Unauthorized, "the API server does not accept the credentials of the kubeconfig", err)
	case errors.As(err, &status) && status.Status().Code > 0:
		return c.failed(Unreachable, fmt.Sprintf("the API server does not answer as one: the probe got the HTTP status %d", status.Status().Code), err)
	}
	return c.failed(Unreachable, "the API server does not answer", err)
}

// mayReadNodes lists one Node, so that a missing permission is told instead of hidden in the retries of the informer.
func (c *Connection) mayReadNodes(ctx context.Context) error {
	err := c.client.List(ctx, &corev1.NodeList{}, client.Limit(1))
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return c.failed(Unauthorized, "the kubeconfig does not allow to list Nodes", err)
	}
	return c.failed(Unreachable, "the API server does not list Nodes", err)
}
