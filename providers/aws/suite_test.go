package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/aws/interruption"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/batch"
	"millwright.dev/providers/driver/manager"
	"millwright.dev/providers/driver/orphans"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simclient"
	"millwright.dev/test/clouds/aws/sqs"
	"millwright.dev/test/testenv"
	"millwright.dev/test/testenv/machines"
)

// What the simulated account has beforehand.
const (
	testImage  = "ami-0a000000000000001"
	testGroup  = "sg-0a000000000000001"
	testRegion = "us-east-1"
	zoneA      = "us-east-1a"
	subnetA    = "subnet-0a000000000000001"
	subnetB    = "subnet-0a000000000000002"
)

var env *testenv.Env

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(time.Minute)
	// Six tests ask at once: at every 20 ms half of all requests were theirs.
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	// More at once than there are processors, for the same reason as in testenv.Main.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	flag.Parse()
	if !testing.Verbose() {
		// Without an output of its own klog would write files below the temporary directory.
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
	}
	ctrl.SetLogger(klog.Background())
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	env, err = testenv.Start(testenv.Options{CRDs: []testenv.CRDs{testenv.CoreCRDs, testenv.AWSCRDs, testenv.CloudConfigCRDs}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	return m.Run()
}

// steppedClock is the real clock, moved forward manually.
type steppedClock struct {
	clock.RealClock
	offset atomic.Int64
}

func (c *steppedClock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

func (c *steppedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *steppedClock) step(d time.Duration) { c.offset.Add(int64(d)) }

// newScheme has the kinds that the provider's manager knows.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	kinds := runtime.SchemeBuilder{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme}
	return scheme, kinds.AddToScheme(scheme)
}

// fixture is a namespace, a simulated EC2 account and, once started, the provider.
type fixture struct {
	*GomegaWithT
	t         *testing.T
	ctx       context.Context
	client    client.Client
	namespace string
	sim       *simulator.Server
	endpoint  string
	// endpoints are those of regions that have one of their own.
	endpoints map[string]string
	clock     *steppedClock
	// transport, if set, changes how the provider connects to EC2.
	transport func(*http.Transport)
	options   *manager.Options
	backoff   func(driver.Class, int) time.Duration
	// cloud is the driver of the process that was started last.
	cloud *instance.Driver
	batch batch.Options
	// wrap, if set, wraps the provider's EC2 clients.
	wrap func(instance.API) instance.API
	// orphans are the options of the collector, which is off by default.
	orphans orphans.Options
	// intercept, if set, wraps the provider's client.
	intercept interceptor.Funcs
	// reads are the Secrets that the provider has read.
	reads atomic.Int64
	// queue, if set, is the interruption queue, at this URL.
	queue    *sqs.Queue
	queueURL string
	// action about what the queue announces; empty deletes.
	action string
	stop   func()
	// messages has the message of the condition that was read last, by the object's name.
	messages map[string]string
}

// newFixture lets the test run beside others: each has an account, a manager and a namespace of its own, and waits for them most of
// the time.
func newFixture(t *testing.T, sim simulator.Options) *fixture {
	t.Helper()
	t.Parallel()
	return newFixtureAlone(t, sim)
}

// newFixtureAlone is for tests that change what belongs to the whole process, such as its environment, or to the whole cluster, such as
// identities, which every manager looks after.
func newFixtureAlone(t *testing.T, sim simulator.Options) *fixture {
	t.Helper()
	g := NewWithT(t)
	scheme, err := newScheme()
	g.Expect(err).NotTo(HaveOccurred())
	c, err := client.New(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	g.Expect(err).NotTo(HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "aws-"}}
	g.Expect(c.Create(t.Context(), namespace)).To(Succeed())

	server := simulator.New(sim)
	endpoint := httptest.NewServer(server)
	f := &fixture{
		GomegaWithT: g, t: t, ctx: t.Context(), client: machines.WithCore(c), namespace: namespace.Name,
		sim: server, endpoint: endpoint.URL, clock: &steppedClock{}, options: testOptions(namespace.Name),
		backoff: func(driver.Class, int) time.Duration { return 50 * time.Millisecond },
		stop:    func() {}, messages: map[string]string{},
	}
	t.Cleanup(func() {
		f.stop()
		server.Close()
		endpoint.Close()
	})
	return f
}

func testOptions(namespace string) *manager.Options {
	options := manager.NewOptions(name, driver.Traits{})
	options.Identities = &manager.IdentityOptions{}
	options.AddFlags(pflag.NewFlagSet("test", pflag.ContinueOnError))
	options.Namespace = namespace
	options.HealthAddr, options.Diagnostics.Address = "0", "0"
	options.Diagnostics.Insecure = true
	options.InventoryFast, options.InventorySlow = 50*time.Millisecond, 300*time.Millisecond
	options.CloudTimeout = 5 * time.Second
	return options
}

// start runs the provider as a process of its own would: nothing is kept in memory from an earlier one.
func (f *fixture) start() {
	f.t.Helper()
	scheme, err := newScheme()
	f.Expect(err).NotTo(HaveOccurred())
	mgr, err := manager.New(env.Config, scheme, f.options, func(o *ctrl.Options) {
		skip := true
		o.Controller.SkipNameValidation = &skip
		o.MapperProvider = env.MapperProvider
	})
	f.Expect(err).NotTo(HaveOccurred())
	cloud := instance.New(func(ctx context.Context, region string) (instance.API, error) {
		api, err := f.clients(ctx, region)
		if f.wrap != nil && err == nil {
			api = f.wrap(api)
		}
		return api, err
	}, f.clock)
	sessions := newSessions(mgr, f.options, f.clock, f.load)
	cloud.WithIdentities(sessions)
	f.cloud = cloud
	own := &ownAccount{driver: cloud, load: f.load, clock: f.clock, timeout: f.options.CloudTimeout}
	f.Expect(newIdentityReconciler(mgr, f.options, f.clock, sessions, own).SetupWithManager(mgr)).To(Succeed())
	r := newMachineReconciler(mgr, f.options, f.clock, cloud)
	r.Client = interceptor.NewClient(withoutWatch{mgr.GetClient()}, f.intercept)
	r.APIReader = countedReader{r.APIReader, &f.reads}
	r.Options.Backoff, r.Options.Batch, r.Options.Orphans = f.backoff, f.batch, f.orphans
	f.Expect(r.SetupWithManager(mgr)).To(Succeed())
	f.Expect(newTemplateReconciler(mgr, f.options, f.clock, cloud, r.Limiter()).SetupWithManager(mgr)).To(Succeed())
	if f.queue != nil {
		f.Expect((&interruption.Options{Queues: []string{f.queueURL}, Action: f.action}).SetupWithManager(f.ctx, mgr, name, "", r.Interrupted)).
			To(Succeed())
	}

	ctx, cancel := context.WithCancel(f.ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	f.stop = func() {
		cancel()
		if err := testenv.Ended(<-ended); err != nil {
			f.t.Errorf("the manager ended: %v", err)
		}
		f.stop = func() {}
	}
}

// withoutWatch lets a client that cannot watch be intercepted; the reconciler never watches by it.
type withoutWatch struct{ client.Client }

func (withoutWatch) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("this client does not watch")
}

// countedReader counts the Secrets that are read.
type countedReader struct {
	client.Reader
	secrets *atomic.Int64
}

func (r countedReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.Secret); ok {
		r.secrets.Add(1)
	}
	return r.Reader.Get(ctx, key, obj, opts...)
}

func (f *fixture) clients(ctx context.Context, region string) (instance.API, error) {
	cfg, err := f.load(ctx, region)
	return instance.NewClient(cfg), err
}

// load is the configuration of the process.
func (f *fixture) load(_ context.Context, region string) (aws.Config, error) {
	cfg := aws.Config{
		Region:      region,
		HTTPClient:  simclient.HTTPClient(),
		Credentials: credentials.NewStaticCredentialsProvider("AKIATEST", "secret", ""),
	}
	if f.transport != nil {
		cfg.HTTPClient = simclient.HTTPClient(f.transport)
	}
	if endpoint := cmp.Or(f.endpoints[region], f.endpoint); endpoint != "" {
		cfg.BaseEndpoint = aws.String(endpoint)
	}
	return cfg, nil
}
