package standin

import (
	"context"
	stderrors "errors"
	"net/http"
	"sync"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"millwright.dev/contracts/version"
)

// Provider runs the stand-ins' controllers for one namespace, so that many with different switches can run side by side.
type Provider struct {
	Config *rest.Config
	// Mapper is used if it is set.
	Mapper    meta.RESTMapper
	Namespace string
	// Contracts are the versions of the contract that it keeps.
	Contracts []version.Contract
	Switches  Switches
	Cloud     *Cloud

	mu     sync.Mutex
	cancel context.CancelFunc
	ended  chan error
}

// Start starts the controllers and returns.
func (p *Provider) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.start()
}

func (p *Provider) start() error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return errors.Wrap(err, "creating a stand-in")
		}
	}
	mgr, err := ctrl.NewManager(p.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		// The priority queue can be deadlocked when it is shut down, and a restart would last as long as the grace period:
		// https://github.com/kubernetes-sigs/controller-runtime/issues/3538
		Controller: config.Controller{UsePriorityQueue: new(false)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{p.Namespace: {}}},
		MapperProvider: func(host *rest.Config, transport *http.Client) (meta.RESTMapper, error) {
			if p.Mapper != nil {
				return p.Mapper, nil
			}
			return apiutil.NewDynamicRESTMapper(host, transport)
		},
	})
	if err != nil {
		return errors.Wrap(err, "creating a stand-in")
	}
	for _, contract := range p.Contracts {
		if err := AddMachine(mgr, contract, p.Cloud, p.Switches); err != nil {
			return errors.Wrap(err, "creating a stand-in")
		}
		if err := AddConfig(mgr, contract, p.Switches); err != nil {
			return errors.Wrap(err, "creating a stand-in")
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	p.cancel, p.ended = cancel, ended
	return nil
}

// Restart stops the controllers and starts them with empty memory.
func (p *Provider) Restart(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	// It has to run again even if it has failed.
	return stderrors.Join(p.stop(), p.start())
}

// Stop stops the controllers.
func (p *Provider) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop()
}

func (p *Provider) stop() error {
	if p.cancel == nil {
		return nil
	}
	p.cancel()
	p.cancel = nil
	return errors.Wrap(<-p.ended, "a stand-in")
}
