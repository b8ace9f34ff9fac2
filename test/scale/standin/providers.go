package standin

import (
	"context"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// workers is how many objects of one kind are worked on at a time. The work is only API
// requests, so that few keep two processors busy.
const workers = 8

// Providers are the running stand-ins.
type Providers struct {
	manager ctrl.Manager
	kubelet *kubelet
	nodes   atomic.Int64
}

// New sets the stand-ins up on the API server that the configuration reaches; Start runs them.
func New(restConfig *rest.Config, log logr.Logger) (*Providers, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	restConfig = rest.CopyConfig(restConfig)
	// Only the machine limits the stand-ins.
	restConfig.QPS = -1
	manager, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:  scheme,
		Logger:  log,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		// Several sets of stand-ins run in one process, one after the other.
		Controller: config.Controller{SkipNameValidation: new(true), MaxConcurrentReconciles: workers},
	})
	if err != nil {
		return nil, errors.Wrap(err, "creating the manager of the stand-in providers")
	}
	p := &Providers{manager: manager}
	p.kubelet = &kubelet{client: manager.GetClient()}
	if err := p.setup(); err != nil {
		return nil, errors.Wrap(err, "setting up the stand-in providers")
	}
	return p, nil
}

// Scheme has the kinds that the benchmark uses.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, errors.Wrap(err, "adding Kubernetes' kinds to the scheme")
	}
	return scheme, errors.Wrap(clusterv1.AddToScheme(scheme), "adding the core kinds to the scheme")
}

func (p *Providers) setup() error {
	c := p.manager.GetClient()
	if err := (&configs{client: c}).setup(p.manager); err != nil {
		return err
	}
	if err := (&machines{client: c, nodes: &p.nodes}).setup(p.manager); err != nil {
		return err
	}
	return p.kubelet.setup(p.manager)
}

// Start runs the stand-ins until the context is done.
func (p *Providers) Start(ctx context.Context) error {
	return errors.Wrap(p.manager.Start(ctx), "running the stand-in providers")
}

// Cache is the cache that the stand-ins see the API through. It holds Machines whole.
func (p *Providers) Cache() cache.Cache { return p.manager.GetCache() }

// Client reads from the cache and writes without a limit.
func (p *Providers) Client() client.Client { return p.manager.GetClient() }

// Reader reads from the API server.
func (p *Providers) Reader() client.Reader { return p.manager.GetAPIReader() }

// PodsEnded is how many terminating Pods were removed so far, as their kubelets would have done.
func (p *Providers) PodsEnded() int { return int(p.kubelet.ended.Load()) }

// NodesMade is how many Nodes have joined so far.
func (p *Providers) NodesMade() int { return int(p.nodes.Load()) }

// metadata is an empty object of the kind, which caches hold by metadata only.
func metadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	return object
}

// Metadata is an empty object of one of the stand-in kinds, for the cache's informers.
func Metadata(gvk schema.GroupVersionKind) client.Object { return metadata(gvk) }
