package approval

import (
	"context"

	"github.com/pkg/errors"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/wake"
	"millwright.dev/contracts/remote"
)

// Connections are the connections to target clusters, each with a cache of its certificate signing requests.
type Connections struct {
	*remote.Connections

	// approver and serving are the controllers of the requests for each signer.
	approver, serving *wake.Typed[Request]
}

// NewConnections returns Connections without any connection; Attach and Probe of the options are not for the caller.
func NewConnections(options remote.Options) *Connections {
	c := &Connections{approver: &wake.Typed[Request]{}, serving: &wake.Typed[Request]{}}
	options.Attach = c.attach
	options.Probe = remote.Resource{Path: "/apis/certificates.k8s.io/v1/certificatesigningrequests", Name: "CertificateSigningRequests"}
	c.Connections = remote.New(options)
	return c
}

// GetUncachedClient returns a client that reads live, and writes; a *remote.NotConnectedError while there is no connection.
func (c *Connections) GetUncachedClient(_ context.Context, cluster client.ObjectKey) (client.Client, error) {
	connection, err := c.Get(cluster)
	if err != nil {
		return nil, err
	}
	return connection.Client(), nil
}

// GetReader returns a reader of the cache, which waits until that has been filled; a *remote.NotConnectedError while there is no
// connection.
func (c *Connections) GetReader(_ context.Context, cluster client.ObjectKey) (client.Reader, error) {
	connection, err := c.Get(cluster)
	if err != nil {
		return nil, err
	}
	requests, ok := connection.Attachment().(*requestCache)
	if !ok {
		return nil, errors.Errorf("the connection to Cluster %s has no cache of requests", cluster)
	}
	return requests, nil
}

// requestCache is the cache of one connection.
type requestCache struct{ cache.Cache }

// attach prepares the cache of a connection, whose events are Requests for the two controllers.
func (c *Connections) attach(connection *remote.Connection) (remote.Attachment, error) {
	config := connection.WatchConfig()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, errors.Wrap(err, "creating an HTTP client for certificate signing requests")
	}
	requests, err := cache.New(config, cache.Options{
		HTTPClient: httpClient, Scheme: connection.Options().Scheme, Mapper: connection.RESTMapper(),
		ByObject: CacheOptions(), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, errors.Wrap(err, "creating the cache of certificate signing requests")
	}
	informer, err := requests.GetInformer(context.Background(), &certificatesv1.CertificateSigningRequest{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, errors.Wrap(err, "creating the cache of certificate signing requests")
	}
	enqueue := func(object any) {
		// A request that is reconciled before there is a connection is dropped, see ignoreDisconnected.
		if connection.AwaitHandOut() {
			c.enqueue(connection.Clusters(), object)
		}
	}
	// Deletions need nothing.
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, after any) { enqueue(after) },
	})
	return &requestCache{requests}, errors.Wrap(err, "watching certificate signing requests")
}

// enqueue has a request reconciled by the controller for its signer: an undecided one, and one for a first certificate when it is
// decided as well, since the condition of its CloudConfig reports that.
func (c *Connections) enqueue(clusters []client.ObjectKey, object any) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return
	}
	_, first := nodeaccess.NamesOfJoinGroups(csr.Spec.Groups)
	var to *wake.Typed[Request]
	switch {
	case csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && (first || undecided(csr)):
		to = c.approver
	case csr.Spec.SignerName == certificatesv1.KubeletServingSignerName && undecided(csr):
		to = c.serving
	default:
		return
	}
	for _, cluster := range clusters {
		to.Enqueue(Request{Cluster: cluster, Name: csr.Name})
	}
}

// Check implements remote.Attachment. Whether requests may be read is not asked: where another approver is used, they need not be.
func (*requestCache) Check(context.Context) error { return nil }

// Run fills the cache until ctx ends.
func (r *requestCache) Run(ctx context.Context) {
	if err := r.Start(ctx); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Starting the cache of certificate signing requests failed")
	}
}

// HasSynced implements remote.Attachment. A CloudConfig needs the connection and not the requests, so a target cluster that does not
// list them still gets its machines joined; with the first list each request is an event.
func (*requestCache) HasSynced() bool { return true }

// ignoreDisconnected returns nil for a connection that is lost, or that has just been made: all requests come again with the next
// list.
func ignoreDisconnected(err error) error {
	var notStarted *cache.ErrCacheNotStarted
	if remote.IsNotConnected(err) || errors.As(err, &notStarted) {
		return nil
	}
	return err
}
