package workers

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"millwright.dev/core/external"
	"millwright.dev/core/index"
	"millwright.dev/core/trim"
	"millwright.dev/test/testenv"
)

// Manager is what Start runs.
type Manager struct {
	// SetUp adds the controllers.
	SetUp func(ctx context.Context, mgr ctrl.Manager) error
	// Wrap may put something between the controllers and the API server.
	Wrap func(client.WithWatch) client.Client
	// Transport may put something between the manager and the network.
	Transport func(http.RoundTripper) http.RoundTripper
}

// Start runs a manager for this namespace alone, until Stop or the end of the test.
func (f *Fixture) Start(t *testing.T, m Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	kubeconfig := rest.CopyConfig(f.suite.Env.Config)
	f.suite.activity.watch(kubeconfig)
	if m.Transport != nil {
		kubeconfig.Wrap(m.Transport)
	}
	mgr, err := ctrl.NewManager(kubeconfig, f.managerOptions(m.Wrap))
	f.G.Expect(err).NotTo(HaveOccurred())
	f.G.Expect(index.Register(ctx, mgr.GetFieldIndexer())).To(Succeed())
	f.G.Expect(m.SetUp(ctx, mgr)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	f.Stop = func() {
		if !stopped {
			stopped = true
			cancel()
			f.G.Expect(testenv.Ended(<-ended)).To(Succeed())
		}
	}
	t.Cleanup(f.Stop)
}

func (f *Fixture) managerOptions(wrap func(client.WithWatch) client.Client) ctrl.Options {
	options := ctrl.Options{
		Scheme:  f.suite.Client.Scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		// Each test has controllers of the same names.
		Controller:              config.Controller{SkipNameValidation: ptr.To(true)},
		GracefulShutdownTimeout: ptr.To(testenv.ShutdownTimeout),
		MapperProvider:          f.suite.Env.MapperProvider,
	}
	options.Cache.DefaultNamespaces = map[string]cache.Config{f.Namespace: {}}
	// As the core caches: what is trimmed must survive every write.
	options.Cache.DefaultTransform = trim.Transform(external.Trim)
	if wrap != nil {
		options.NewClient = func(c *rest.Config, o client.Options) (client.Client, error) {
			made, err := client.NewWithWatch(c, o)
			if err != nil {
				return nil, err
			}
			return wrap(made), nil
		}
	}
	return options
}
