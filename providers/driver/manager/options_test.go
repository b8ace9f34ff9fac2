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
		"orphan-policy": "delete", "machine-safety-orphan-vms-period": "15m0s",
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

// What is misspelled must not have anything deleted.
func TestFlagsOfOrphans(t *testing.T) {
	for _, test := range []struct{ argument, want string }{
		{"--orphan-policy=report", ""},
		{"--orphan-policy=reprot", `--orphan-policy is "reprot": set it to delete or report`},
		{"--machine-safety-orphan-vms-period=0", ""},
		{"--machine-safety-orphan-vms-period=-1m", "--machine-safety-orphan-vms-period is -1m0s"},
		{"--machine-safety-orphan-vms-period=1s", "a minute at least"},
	} {
		g := NewWithT(t)
		o := NewOptions("millwright-test", driver.Traits{})
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.AddFlags(fs)
		g.Expect(fs.Parse([]string{test.argument, "--namespace=one", "--leader-elect-resource-namespace=own"})).To(Succeed())
		if test.want != "" {
			g.Expect(o.Validate()).To(MatchError(ContainSubstring(test.want)))
			continue
		}
		g.Expect(o.Validate()).To(Succeed())
		g.Expect(o.Machine().Orphans.On()).To(Equal(test.argument == "--orphan-policy=report"))
		g.Expect(o.Machine().Orphans.Namespace).To(Equal("one"))
		g.Expect(o.Machine().Orphans.Record.String()).To(Equal("own/millwright-test-orphans"), "as the lease is named")
	}
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
