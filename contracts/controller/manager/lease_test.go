package manager_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"millwright.dev/contracts/controller/manager"
	"millwright.dev/test/testenv"
)

// TestALeaseThatIsLostInMidReconcile: the API server hangs on the lease of a manager, or refuses to renew it, while one of its workers
// writes and writes. The manager has ended, and the process with it, before another has the lease: none of its writes comes after that.
func TestALeaseThatIsLostInMidReconcile(t *testing.T) {
	g := NewWithT(t)
	ctrl.SetLogger(klog.Background())
	env, err := testenv.Start(testenv.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(env.Stop()).To(Succeed()) })
	for name, broken := range map[string]func(*http.Request) (*http.Response, error){
		"hangs": func(request *http.Request) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		},
		"refuses": func(request *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusInternalServerError, Body: http.NoBody, Request: request}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loses(t, env, name, broken)
		})
	}
}

// leader is a manager that writes for as long as its context lasts, once it has the lease. leads is closed then.
func leader(t *testing.T, rc *rest.Config, lease string) (leads <-chan struct{}, ended <-chan error, wrote *atomic.Int64) {
	t.Helper()
	g := NewWithT(t)
	const duration, renew, retry = 8 * time.Second, 6500 * time.Millisecond, 500 * time.Millisecond
	mgr, err := manager.New(rc, ctrl.Options{
		Scheme: testenv.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionID: lease, LeaderElectionNamespace: metav1.NamespaceDefault, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(duration), RenewDeadline: new(renew), RetryPeriod: new(retry), GracefulShutdownTimeout: new(time.Minute),
	})
	g.Expect(err).NotTo(HaveOccurred())
	wrote = &atomic.Int64{}
	g.Expect(mgr.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		for ctx.Err() == nil {
			written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "written-"}}
			if mgr.GetClient().Create(ctx, written) == nil {
				wrote.Add(1)
			}
		}
		return nil
	}))).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	ends, gone := make(chan error, 1), make(chan struct{})
	go func() {
		ends <- mgr.Start(ctx)
		close(gone)
	}()
	t.Cleanup(func() { cancel(); <-gone })
	return mgr.Elected(), ends, wrote
}

func loses(t *testing.T, env *testenv.Env, lease string, broken func(*http.Request) (*http.Response, error)) {
	g := NewWithT(t)
	var breaks atomic.Bool
	rc := rest.CopyConfig(env.Config)
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if breaks.Load() && strings.Contains(request.URL.Path, "/leases/") {
				return broken(request)
			}
			return next.RoundTrip(request)
		})
	})
	leads, ended, wrote := leader(t, rc, lease)
	g.Eventually(leads).WithTimeout(time.Minute).Should(BeClosed())
	g.Eventually(wrote.Load).WithTimeout(time.Minute).ShouldNot(BeZero())
	breaks.Store(true)
	follows, _, _ := leader(t, env.Config, lease)
	g.Eventually(follows).WithTimeout(time.Minute).Should(BeClosed())
	g.Expect(ended).To(Receive(MatchError(ContainSubstring("leader election lost"))), "it has ended before another leads")
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
