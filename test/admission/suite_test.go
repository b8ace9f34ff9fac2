package admission_test

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"millwright.dev/contracts/version"
	"millwright.dev/core/admission"
	"millwright.dev/core/admission/certificates"
	_ "millwright.dev/core/features" // The defaults of the core's feature gates.
	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/coretest"
	"millwright.dev/test/testenv"
)

// timeout is how long a test waits for what must happen.
const timeout = time.Minute

// env is the API server that the tests share; port is where it looks for the webhooks.
var (
	env  *testenv.Env
	port int
	live client.Client
)

func TestMain(m *testing.M) {
	options := testenv.Options{CRDs: []testenv.CRDs{testenv.CoreCRDs, testenv.AWSCRDs}, Objects: coretest.CRDs()}
	os.Exit(testenv.Main(m, options, func(e *testenv.Env) (_ func() error, err error) {
		env = e
		if port, err = controlplane.FreePort(); err != nil {
			return nil, err
		}
		if live, err = client.New(env.Config, client.Options{Scheme: newScheme()}); err != nil {
			return nil, err
		}
		return nil, env.InstallWebhooks(context.Background(), port)
	}))
}

func newScheme() *runtime.Scheme {
	return testenv.Scheme(apiextensionsv1.AddToScheme, admission.AddToScheme, infrav1.AddToScheme)
}

// server is the webhook part of a core, as core/webhooks.go puts it together.
type server struct {
	cancel      context.CancelFunc
	done        chan error
	certificate *certificates.Reconciler
	check       func() error
	cached      cache.Cache
}

func settings(life certificates.Lifetimes) certificates.Settings {
	return certificates.Settings{
		Secret:        types.NamespacedName{Namespace: "millwright-system", Name: "millwright-core-webhook-certificate"},
		Names:         []string{"millwright-core-webhook.millwright-system.svc", "localhost"},
		Configuration: "millwright-core",
		CRDs:          admission.CRDs(),
		Lifetimes:     life,
	}
}

// launch starts a replica on a port. With a lease it takes part in the election of a leader.
func launch(rc *rest.Config, port int, life certificates.Lifetimes, lease string) (*server, error) {
	web := admission.NewServer(admission.ServerOptions{Port: port})
	mgr, err := ctrl.NewManager(rc, ctrl.Options{
		Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", WebhookServer: web,
		LeaderElection: lease != "", LeaderElectionID: lease, LeaderElectionNamespace: "millwright-system", LeaderElectionReleaseOnCancel: true,
		LeaseDuration: ptr.To(4 * time.Second), RenewDeadline: ptr.To(3 * time.Second), RetryPeriod: ptr.To(500 * time.Millisecond),
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, GracefulShutdownTimeout: ptr.To(testenv.ShutdownTimeout),
	})
	if err != nil {
		return nil, err
	}
	// Like the core, it caches objects that may be stored in either version.
	if _, err := mgr.GetCache().GetInformer(context.Background(), &clusterv1.Machine{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, err
	}
	certificate, err := certificates.Add(mgr, settings(life))
	if err != nil {
		return nil, err
	}
	web.UseCertificate(certificate)
	if err := admission.Register(mgr, admission.Resolve(&version.Resolver{Reader: mgr.GetClient()})); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{
		cancel:      cancel,
		done:        make(chan error, 1),
		certificate: certificate,
		cached:      mgr.GetCache(),
		check:       func() error { return web.Check(nil) },
	}
	go func() { s.done <- mgr.Start(ctx) }()
	return s, nil
}

func (s *server) stop() error {
	s.cancel()
	return testenv.Ended(<-s.done)
}

// serve runs a replica for the length of a test, and waits until the API server goes through its webhooks.
func serve(t *testing.T) *server {
	t.Helper()
	g := NewWithT(t)
	s, err := launch(env.Config, port, certificates.Lifetimes{}, "")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(s.stop()).To(Succeed()) })
	trusted(t)
	return s
}

// trusted waits until the API server reaches the webhooks of admission and conversion.
func trusted(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(func(g Gomega) {
		check := &clusterv1.MachineHealthCheck{ObjectMeta: named("default", "probe"), Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		}}
		g.Expect(live.Create(t.Context(), check, client.DryRunAll)).To(Succeed())
		g.Expect(check.Labels).NotTo(BeEmpty())
		for _, name := range admission.CRDs() {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(live.Get(t.Context(), client.ObjectKey{Name: name}, crd)).To(Succeed())
			g.Expect(crd.Spec.Conversion.Webhook.ClientConfig.CABundle).NotTo(BeEmpty())
		}
	}).WithTimeout(timeout).WithPolling(200 * time.Millisecond).Should(Succeed())
}

// namespace makes a namespace for a test.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	NewWithT(t).Expect(live.Create(t.Context(), ns)).To(Succeed())
	return ns.Name
}
