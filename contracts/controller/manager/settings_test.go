package manager

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// parsed are the options of a manager that was started with these arguments.
func parsed(g *WithT, arguments ...string) *Options {
	options := NewOptions("example", "example-system")
	g.Expect(Program{Options: options}.Parse(pflag.NewFlagSet("", pflag.ContinueOnError), arguments)).To(Succeed())
	return options
}

// TestWhatAManagerDoesByDefault: users name no flags.
func TestWhatAManagerDoesByDefault(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("POD_NAMESPACE", "")
	options := parsed(g)
	scheme := runtime.NewScheme()
	settings, err := options.Settings(scheme)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(settings.Scheme).To(BeIdenticalTo(scheme))
	g.Expect(settings.Metrics.BindAddress).NotTo(BeEmpty())
	g.Expect(options.Logs.Verbosity).To(BeEquivalentTo(2), "that of Cluster API's managers")
	g.Expect(settings.HealthProbeBindAddress).To(Equal(":9440"))
	g.Expect(settings.PprofBindAddress).To(BeEmpty())
	g.Expect(settings.LeaderElection).To(BeFalse())
	g.Expect(settings.LeaderElectionID).To(Equal("example"))
	g.Expect(settings.LeaderElectionNamespace).To(Equal("example-system"))
	g.Expect(settings.LeaderElectionReleaseOnCancel).To(BeTrue(), "another continues at once")
	g.Expect([]time.Duration{*settings.LeaseDuration, *settings.RenewDeadline, *settings.RetryPeriod}).To(
		Equal([]time.Duration{15 * time.Second, 10 * time.Second, 2 * time.Second}))
	g.Expect(settings.GracefulShutdownTimeout).To(HaveValue(Equal(ShutdownTimeout)))
	g.Expect(settings.Controller.UsePriorityQueue).To(HaveValue(BeTrue()))
	g.Expect(settings.Controller.CacheSyncTimeout).To(BeNumerically(">", 2*time.Minute), "more than controller-runtime's, for big clusters")
	g.Expect(settings.Cache.SyncPeriod).To(HaveValue(Equal(10 * time.Minute)))
	g.Expect(settings.Cache.DefaultTransform).NotTo(BeNil(), "managed fields take memory")
	g.Expect(settings.Cache.DefaultNamespaces).To(BeEmpty())
}

func TestSettingsOfFlags(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("POD_NAMESPACE", "pods")
	options := parsed(g, "--health-addr=:1", "--profiler-address=:2", "--leader-elect", "--leader-elect-lease-duration=15s",
		"--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=5s", "--namespace=one", "--sync-period=1h", "--diagnostics-address=:3")
	settings, err := options.Settings(runtime.NewScheme())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(settings.HealthProbeBindAddress).To(Equal(":1"))
	g.Expect(settings.PprofBindAddress).To(Equal(":2"))
	g.Expect(settings.Metrics.BindAddress).To(Equal(":3"))
	g.Expect(settings.LeaderElection).To(BeTrue())
	g.Expect([]time.Duration{*settings.LeaseDuration, *settings.RenewDeadline, *settings.RetryPeriod}).To(
		Equal([]time.Duration{15 * time.Second, 8 * time.Second, 5 * time.Second}))
	g.Expect(settings.Cache.SyncPeriod).To(HaveValue(Equal(time.Hour)))
	g.Expect(settings.Cache.DefaultNamespaces).To(Equal(map[string]cache.Config{"one": {}}))
	g.Expect(settings.LeaderElectionNamespace).To(Equal("pods"), "that of the process")
	options.LeaseNamespace = "leases"
	g.Expect(options.OwnNamespace()).To(Equal("leases"), "that of the flag first")
}

func TestValidate(t *testing.T) {
	lease := func(duration, renew, retry time.Duration) func(*Options) {
		return func(o *Options) {
			o.LeaderElect = true
			o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = duration*time.Second, renew*time.Second, retry*time.Second
		}
	}
	for name, test := range map[string]struct {
		change func(*Options)
		wrong  string
	}{
		"the defaults":                           {func(*Options) {}, ""},
		"a lease that ends before its renewal":   {lease(10, 10, 2), "lease-duration (10s) must be at least"},
		"a lease that ends in its last renewal":  {lease(15, 14, 2), "together (16s)"},
		"a lease that just lasts":                {lease(16, 14, 2), ""},
		"a deadline of one attempt":              {lease(15, 10, 10), "renew-deadline (10s) more than 1.2 times"},
		"a deadline that jitter exceeds":         {lease(30, 12, 10), "renew-deadline (12s) more than 1.2 times"},
		"a deadline that jitter does not exceed": {lease(30, 13, 10), ""},
		"no time between attempts":               {lease(15, 10, 0), "retry-period (0s) must be positive"},
		"a lease that is not used":               {func(o *Options) { o.LeaseDuration = 0 }, ""},
		"no requests":                            {func(o *Options) { o.KubeAPIQPS = 0 }, "must be positive"},
		"no burst":                               {func(o *Options) { o.KubeAPIBurst = 0 }, "must be positive"},
		"few requests":                           {func(o *Options) { o.KubeAPIQPS, o.KubeAPIBurst = 0.1, 1 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options := parsed(g)
			test.change(options)
			if test.wrong == "" {
				g.Expect(options.Validate()).To(Succeed())
			} else {
				g.Expect(options.Validate()).To(MatchError(ContainSubstring(test.wrong)))
			}
		})
	}
}

// TestLimit: what others have of the configuration stays as it is.
func TestLimit(t *testing.T) {
	g := NewWithT(t)
	given := &rest.Config{Host: "h", QPS: 5, UserAgent: "other"}
	limited := parsed(g, "--kube-api-qps=7", "--kube-api-burst=9").Limit(given)
	g.Expect(given).To(Equal(&rest.Config{Host: "h", QPS: 5, UserAgent: "other"}))
	g.Expect(limited.Host).To(Equal("h"))
	g.Expect(limited.QPS).To(BeEquivalentTo(7))
	g.Expect(limited.Burst).To(Equal(9))
	g.Expect(limited.UserAgent).To(Equal("example"))
	g.Expect(limited.WarningHandlerWithContext).NotTo(BeNil())

	heard := &heard{}
	warnings{heard}.HandleWarningHeaderWithContext(t.Context(), 299, "agent", "deprecated")
	g.Expect(heard.text).To(Equal("deprecated"))
}

// heard keeps a warning.
type heard struct{ text string }

func (h *heard) HandleWarningHeader(_ int, _, text string) { h.text = text }
