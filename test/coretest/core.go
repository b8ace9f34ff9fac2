// Package coretest runs the controllers of the core against a real API server, for tests. The API server is
// the management cluster and the target cluster in one. The test simulates providers.
package coretest

import (
	"cmp"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"millwright.dev/contracts/controller/events"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/contracts/version"
	"millwright.dev/core/cluster"
	"millwright.dev/core/drain"
	"millwright.dev/core/external"
	"millwright.dev/core/index"
	"millwright.dev/core/machine"
	"millwright.dev/core/remote"
	"millwright.dev/core/safety/freeze"
	"millwright.dev/core/trim"
	"millwright.dev/test/testenv"
)

// Core is a running core with its API server.
type Core struct {
	// Env is the API server.
	Env *testenv.Env
	// Client reads and writes live as an administrator; its requests are not counted.
	Client client.Client
	// Requests counts what the core sends.
	Requests *Requests
	// Connections are the core's.
	Connections *remote.Connections

	// GracePeriod is the grace period of remote conditions that the core has after the next Restart; 5 min.
	GracePeriod time.Duration
	// RequestTimeout bounds the requests of the core to target clusters after the next Restart; 10 s.
	RequestTimeout time.Duration
	// ProbeFailures is how many unanswered probes end a connection of the core after the next Restart; 5.
	ProbeFailures int
	// Freeze are the options by which the core freezes replacements after the next Restart; never, if its timeout is zero.
	Freeze freeze.Options
	// Ahead is by how much the clock of the core is ahead of the API server's after the next Restart; it is behind if that is negative.
	Ahead time.Duration
	// WatchFilter is the filter of Machines and connections that the core has after the next Restart; none.
	WatchFilter string

	cancel     context.CancelFunc
	done       chan error
	life       lives
	reconciles reconciles // of Machines
	// target is the kubeconfig of further Clusters, when it is not the administrator's.
	target []byte
}

// Main runs the tests of a package with a core, which it passes to use first. The API server has the core's CRDs and those of
// the stand-in kinds. Tests of pure functions run without, see testenv.Pure.
func Main(m *testing.M, use func(*Core)) int {
	options := testenv.Options{CRDs: []testenv.CRDs{testenv.CoreCRDs}, Objects: CRDs()}
	return testenv.Main(m, options, func(env *testenv.Env) (func() error, error) {
		c := &Core{Env: env, Requests: &Requests{}, done: make(chan error, 1)}
		if err := c.start(); err != nil {
			return nil, errors.Wrap(err, "starting the core")
		}
		use(c)
		return c.stop, nil
	})
}

// stop stops the core.
func (c *Core) stop() error {
	c.cancel()
	err := testenv.Ended(<-c.done)
	c.life.current().end()
	return err
}

// Restart stops the core and starts another on the same API server.
func (c *Core) Restart(t *testing.T) {
	t.Helper()
	c.RestartAfter(t, func() {})
}

// RestartAfter is Restart with a function that runs while no core does.
func (c *Core) RestartAfter(t *testing.T, meanwhile func()) {
	t.Helper()
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
}

func (c *Core) start() error {
	scheme := testenv.Scheme(apiextensionsv1.AddToScheme)
	if c.Client == nil {
		var err error
		if c.Client, err = client.New(c.Env.Config, client.Options{Scheme: scheme, Mapper: c.Env.Mapper}); err != nil {
			return err
		}
	}
	rc := rest.CopyConfig(c.Env.Config)
	rc.Wrap(c.Requests.wrap)
	life := c.life.begin()
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			c.life.slowness().wait(request)
			return life.send(next, request)
		})
	})
	mgr, err := ctrl.NewManager(rc, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache:  cache.Options{DefaultTransform: trim.Transform(external.Trim)},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		// As long as its controllers take to end; what still runs afterwards, or hangs as testenv.Ended says, reaches nothing any more.
		GracefulShutdownTimeout: ptr.To(500 * time.Millisecond),
		MapperProvider:          c.Env.MapperProvider,
		// Restart runs controllers of the same names one after the other in one process.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return err
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.addControllers(ctx, mgr, life.name); err != nil {
		return err
	}
	go func() { c.done <- mgr.Start(ctx) }()
	// A manager that is to stop while its caches cannot be filled never does: its start still waits for them. A test that
	// holds its lists releases them before the stop.
	for {
		select {
		case <-mgr.Elected():
			return nil
		case err := <-c.done:
			c.done <- err
			return errors.Wrap(err, "the core has exited")
		case <-time.After(50 * time.Millisecond):
			if slow := c.life.slowness(); slow != nil && slow.Held() > 0 {
				return nil
			}
		}
	}
}

func (c *Core) addControllers(ctx context.Context, mgr ctrl.Manager, userAgent string) error {
	if err := index.Register(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c.Connections = remote.New(shared.Options{
		Secrets: mgr.GetAPIReader(), Scheme: mgr.GetScheme(), UserAgent: userAgent, QPS: -1, RequestTimeout: c.RequestTimeout,
		MinRetry: 50 * time.Millisecond, MaxRetry: time.Second, ProbeInterval: time.Second, ProbeFailures: c.ProbeFailures,
	})
	informers := external.NewInformers(&version.Resolver{Reader: mgr.GetClient()}, mgr.GetCache(), mgr.GetAPIReader(), mgr.GetRESTMapper())
	kinds := func() *external.Kinds {
		return &external.Kinds{Informers: informers, Clock: c.clock()}
	}
	options := controller.Options{MaxConcurrentReconciles: 10}
	connect := &shared.Reconciler{
		Client:       mgr.GetClient(),
		Connections:  c.Connections.Connections,
		WatchFilter:  c.WatchFilter,
		WatchSecrets: true,
	}
	if err := connect.SetupWithManager(mgr, options); err != nil {
		return err
	}
	clusters := &cluster.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Connections: c.Connections,
		Kinds:       kinds(),
		Clock:       c.clock(),
		Recorder:    events.For(mgr, "cluster"),
		Options:     cluster.Options{RemoteConnectionGracePeriod: 2 * time.Second},
	}
	if c.Freeze.Timeout > 0 {
		freezer := freeze.New(c.Freeze, clock.RealClock{}, freeze.Connected{Connections: c.Connections})
		freezer.Measure(ctx)
		clusters.Freezer = freezer
	}
	if err := clusters.SetupWithManager(mgr, options); err != nil {
		return err
	}
	judge, err := c.addJudge(mgr, options)
	if err != nil {
		return err
	}
	machines := c.machines(mgr, kinds())
	machines.AddHealth = judge.AddFirst
	options.LogConstructor = c.reconciles.logger(mgr.GetLogger().WithValues("controller", "machine"), "Machine")
	return machines.SetupWithManager(mgr, options)
}

// machines is the reconciler of Machines, with seconds in place of minutes.
func (c *Core) machines(mgr ctrl.Manager, kinds *external.Kinds) *machine.Reconciler {
	return &machine.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Connections: c.Connections,
		Kinds:       kinds,
		Clock:       c.clock(),
		Recorder:    events.For(mgr, "machine"),
		WatchFilter: c.WatchFilter,
		Options: machine.Options{
			RemoteConditionsGracePeriod: cmp.Or(c.GracePeriod, 5*time.Minute),
			PropagateTaints:             true,
			KeepOutdatedFromScaleDown:   true,
			Drain: drain.Options{
				ReturnInterval: time.Second, MinRetry: 250 * time.Millisecond, MaxRetry: time.Second,
			},
		},
	}
}

// Namespace creates a namespace for one test. What the core manages in it is deleted when the test ends, and so are Nodes that
// carry its name as theirs or before a hyphen.
func (c *Core) Namespace(t *testing.T) string {
	t.Helper()
	namespace := testenv.Namespace(t, c.Client)
	t.Cleanup(func() { c.cleanUp(t, namespace) })
	return namespace
}

// Cluster creates a Cluster that has only the kubeconfig of the test's API server.
func (c *Core) Cluster(t *testing.T, namespace, name string) *clusterv1.Cluster {
	t.Helper()
	// The API requires a spec with at least one field.
	created := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       clusterv1.ClusterSpec{Paused: ptr.To(false)},
	}
	if err := c.Client.Create(t.Context(), created); err != nil {
		t.Fatal(err)
	}
	kubeconfig := c.target
	if kubeconfig == nil {
		kubeconfig = c.Env.Kubeconfig
	}
	c.Kubeconfig(t, namespace, name, kubeconfig)
	return created
}

// Kubeconfig creates the kubeconfig Secret of a Cluster.
func (c *Core) Kubeconfig(t *testing.T, namespace, cluster string, content []byte) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      shared.SecretName(cluster),
			Labels:    map[string]string{clusterv1.ClusterNameLabel: cluster},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": content},
	}
	if err := c.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}
