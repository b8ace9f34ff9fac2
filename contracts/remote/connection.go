package remote

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Connection is a connection to one target cluster that was up when it was returned. It may break at any
// time; then requests fail, and caches keep what they have read last.
type Connection struct {
	// Key names the connection: the Cluster object in the management cluster, or nothing when all Clusters share it.
	Key types.NamespacedName
	// Config reaches the API server. The pointer stays the same as long as the connection does; do not modify it.
	Config *rest.Config

	client     client.Client
	options    *Options
	attachment Attachment
	probe      rest.Interface
	transport  http.RoundTripper
	hash       string
	runner     *runner
	// handedOut is closed when Connections hand the connection out, ended when what is attached to it has to end.
	handedOut, ended chan struct{}
}

// Attachment is what a manager keeps beside each connection, such as a cache.
type Attachment interface {
	// Check returns why the connection cannot be used, for example since the kubeconfig lacks a permission; nil when it can. It is
	// called once, before Run.
	Check(ctx context.Context) error
	// Run runs until ctx ends with the connection, and then waits for all that it has started.
	Run(ctx context.Context)
	// HasSynced reports whether the connection can be returned: whether Run has read what the users of the connection rely on.
	HasSynced() bool
}

// Client reads and writes live, each request within Options.RequestTimeout. An API server can take its time: who calls from a
// worker of a controller bounds how many workers one target cluster can hold, see package bulkhead.
func (c *Connection) Client() client.Client { return c.client }

// Attachment returns what Options.Attach has returned for this connection.
func (c *Connection) Attachment() Attachment { return c.attachment }

// Options returns the options of the connection, with defaults.
func (c *Connection) Options() *Options { return c.options }

// RESTMapper maps the built-in kinds that are used in target clusters, without asking the API server.
func (c *Connection) RESTMapper() meta.RESTMapper { return c.options.mapper }

// WatchConfig returns a config for caches. Their requests are watches, so they have no timeout of their own; and they are
// few, so they do not queue behind the rate limit of the others.
func (c *Connection) WatchConfig() *rest.Config {
	watching := rest.CopyConfig(c.Config)
	// A server that speaks JSON only may answer so, too.
	watching.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	watching.ContentType = runtime.ContentTypeProtobuf
	watching.QPS = -1
	return watching
}

// Clusters returns the Clusters that use the connection.
func (c *Connection) Clusters() []types.NamespacedName {
	return c.runner.connections.clustersOf(c.runner)
}

// NotifyConnectivity calls those that have subscribed with OnConnectivity, for each Cluster that uses the connection.
func (c *Connection) NotifyConnectivity() { c.runner.connections.connectivityChanged(c.runner) }

// AwaitHandOut waits until Connections hand the connection out, and returns false when it ends before. It is for what an Attachment
// reads only once: a caller that asks Connections earlier finds no connection.
func (c *Connection) AwaitHandOut() bool {
	select {
	case <-c.handedOut:
		return true
	case <-c.ended:
		return false
	}
}

// Server is the host and port of the API server. The rest of its URL may hold credentials.
func (c *Connection) Server() string {
	at, _, err := rest.DefaultServerUrlFor(c.Config)
	if err != nil {
		return ""
	}
	return at.Host
}

// Failed returns the error that there is no connection to the API server, with one of the reasons of NotConnectedError.
func (c *Connection) Failed(reason, message string, cause error) *NotConnectedError {
	return &NotConnectedError{Reason: reason, Message: message, Server: c.Server(), cause: cause}
}

// name is the name of the target cluster in metrics.
func (c *Connection) name() string {
	if c.Key.Name == "" {
		return "all"
	}
	return c.Key.String()
}

// newConnection prepares a connection; nothing is sent yet.
func newConnection(key types.NamespacedName, from kubeconfig, options Options) (*Connection, error) {
	config := rest.CopyConfig(from.config)
	config.UserAgent = options.UserAgent
	config.QPS, config.Burst = options.QPS, options.Burst
	config.Wrap(bounded(maxAnswer, watchWindow))
	c := &Connection{handedOut: make(chan struct{}), ended: make(chan struct{})}
	config.Wrap(noticing(c.suspect))
	requests := rest.CopyConfig(config)
	requests.Timeout = options.RequestTimeout
	httpClient, err := rest.HTTPClientFor(requests)
	if err != nil {
		return nil, errors.Wrap(err, "creating an HTTP client")
	}
	live, err := liveClient(requests, httpClient, options)
	if err != nil {
		return nil, err
	}
	probing := rest.CopyConfig(requests)
	probing.QPS = -1
	prober, err := corev1client.NewForConfigAndClient(probing, httpClient)
	if err != nil {
		return nil, errors.Wrap(err, "creating a client for probes")
	}
	c.Key, c.Config, c.client, c.options, c.probe, c.hash = key, config, live, &options, prober.RESTClient(), from.hash
	c.transport = httpClient.Transport
	return c, nil
}

func liveClient(config *rest.Config, httpClient *http.Client, options Options) (client.Client, error) {
	// The kinds that are used in target clusters are built in, so the mapping is known without discovery.
	live, err := client.New(config, client.Options{Scheme: options.Scheme, Mapper: options.mapper, HTTPClient: httpClient})
	return live, errors.Wrap(err, "creating a client")
}

// hangUp closes what is open to the API server and not in use. Otherwise it would stay open for a minute and a half, as many times as the
// certificate authority has been rotated meanwhile.
func (c *Connection) hangUp() { utilnet.CloseIdleConnectionsFor(c.transport) }

// answer asks the API server for its version: the cheapest request that needs valid credentials and no permission.
// A server that does not have that path, such as the in-memory one of Cluster API's development provider, is asked
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
		// The credentials are accepted; that path need not be public. What is needed is to list a resource.
		err = c.probe.Get().AbsPath(c.options.Probe.Path).Param("limit", "1").Do(ctx).Error()
	}
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return c.Failed(Unauthorized, "the kubeconfig does not allow listing "+c.options.Probe.Name, err)
	case apierrors.IsUnauthorized(err):
		return c.Failed(Unauthorized, "the API server does not accept the credentials of the kubeconfig", err)
	case errors.As(err, &status) && status.Status().Code > 0:
		return c.Failed(
			Unreachable,
			fmt.Sprintf("the server does not answer like a Kubernetes API server: the probe got HTTP status %d", status.Status().Code),
			err,
		)
	}
	return c.Failed(Unreachable, "the API server does not answer", err)
}
