package manager

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"millwright.dev/providers/driver"
)

func TestFlagsHaveUpstreamsNamesAndDefaults(t *testing.T) {
	g := NewWithT(t)
	o := NewOptions("millwright-test", driver.Traits{Rates: map[driver.CallKind]driver.Rate{driver.CallCreate: {PerSecond: 2, Burst: 5}}})
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	for name, value := range map[string]string{
		"diagnostics-address": ":8443", "insecure-diagnostics": "false", "health-addr": ":9440",
		"leader-elect":                "false",
		"leader-elect-lease-duration": "15s", "leader-elect-renew-deadline": "10s", "leader-elect-retry-period": "2s",
		"namespace": "", "watch-filter": "", "sync-period": "10m0s", "kube-api-qps": "100", "kube-api-burst": "200",
		"profiler-address": "", "tls-min-version": "VersionTLS12",
		"launches-per-second": "2", "launch-burst": "5",
	} {
		flag := fs.Lookup(name)
		if flag == nil {
			t.Errorf("--%s is missing", name)
			continue
		}
		g.Expect(flag.DefValue).To(Equal(value), name)
	}
	g.Expect(fs.Parse([]string{"--instance-visibility-grace=7m", "--watch-filter=x", "--inventory-fast-interval=1s"})).To(Succeed())
	g.Expect(o.Machine().VisibilityGrace).To(Equal(7 * time.Minute))
	g.Expect(o.Machine().WatchFilter).To(Equal("x"))
	g.Expect(o.Machine().ListFast).To(Equal(time.Second))
}

func TestLeaseNamespace(t *testing.T) {
	g := NewWithT(t)
	o := NewOptions("millwright-test", driver.Traits{})
	t.Setenv("POD_NAMESPACE", "")
	g.Expect(o.OwnNamespace()).To(Equal("millwright-test-system"))
	t.Setenv("POD_NAMESPACE", "pod")
	g.Expect(o.OwnNamespace()).To(Equal("pod"))
	o.LeaseNamespace = "flag"
	g.Expect(o.OwnNamespace()).To(Equal("flag"))
}

// A call that was given up may still take effect.
func TestGraceIsNotShorterThanACall(t *testing.T) {
	g := NewWithT(t)
	o := NewOptions("millwright-test", driver.Traits{})
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	g.Expect(o.Validate()).To(Succeed())
	g.Expect(fs.Parse([]string{"--instance-visibility-grace=5s", "--cloud-call-timeout=10s"})).To(Succeed())
	g.Expect(o.Validate()).To(MatchError(And(ContainSubstring("--instance-visibility-grace is 5s"), ContainSubstring("raise the one"))))
}
