package limit

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"millwright.dev/providers/driver"
)

// scraped returns the metrics of some Limiters without their help: "name kind scope value".
func scraped(g *GomegaWithT, some ...*Limiter) []string {
	c := &limiters{
		delayed: collector.delayed, waited: collector.waited, closures: collector.closures, rate: collector.rate,
		all: map[weak.Pointer[Limiter]]struct{}{},
	}
	for _, l := range some {
		c.add(l)
	}
	registry := prometheus.NewPedanticRegistry()
	g.Expect(registry.Register(c)).To(Succeed())
	families, err := registry.Gather()
	runtime.KeepAlive(some) // The collector does not.
	g.Expect(err).NotTo(HaveOccurred())
	var lines []string
	for _, f := range families {
		g.Expect(f.GetHelp()).To(HaveSuffix("."))
		for _, m := range f.GetMetric() {
			lines = append(lines, fmt.Sprintf("%s %s %s %v", strings.TrimPrefix(f.GetName(), "millwright_cloud_"),
				m.GetLabel()[0].GetValue(), m.GetLabel()[1].GetValue(), m.GetCounter().GetValue()+m.GetGauge().GetValue()))
		}
	}
	return lines
}

func TestMetrics(t *testing.T) {
	r := newRig(t, one(2, 1))
	r.Expect(collector.all).To(HaveKey(weak.Make(r.Limiter)))
	for _, name := range []string{"a", "b", "c"} {
		r.admit(name)
	}
	r.admit("c")
	r.passes(500 * time.Millisecond)
	r.admit("b")
	r.passes(time.Second)
	r.admit("c")
	r.Admit("r", read, key("a"))
	r.Expect(scraped(r.GomegaWithT, r.Limiter)).To(Equal([]string{
		"call_delay_seconds_total Create r 2", "call_delay_seconds_total Read r 0",
		"call_rate_limit Create r 2",
		"calls_delayed_total Create r 2", "calls_delayed_total Read r 0",
		"throttle_pauses_total Create r 0", "throttle_pauses_total Read r 0",
	}))

	r.Report("r", create, throttle(time.Minute))
	r.Report("r", create, throttle(time.Minute))
	r.Expect(scraped(r.GomegaWithT, r.Limiter)).To(ContainElements("throttle_pauses_total Create r 1", "call_rate_limit Create r 0"))
	r.passes(time.Minute)
	r.Expect(scraped(r.GomegaWithT, r.Limiter)).To(ContainElement("call_rate_limit Create r 1"))
	other := newRig(t, one(0.5, 1))
	other.admit("a")
	other.admit("b")
	for range 10 { // in whatever order
		r.Expect(scraped(r.GomegaWithT, r.Limiter, other.Limiter)).To(ContainElements(
			"throttle_pauses_total Create r 1", "call_rate_limit Create r 0.5", "calls_delayed_total Create r 3"), "two in one process")
	}
	r.passes(recovery / 2)
	r.Expect(scraped(r.GomegaWithT, r.Limiter)).To(ContainElement("call_rate_limit Create r 2"), "without any call")
	r.passes(idleAfter)
	r.Expect(scraped(r.GomegaWithT, r.Limiter)).To(BeEmpty())
}

func TestMetricsAreBounded(t *testing.T) {
	r := newRig(t, one(1, 1))
	for i := range 3 * maxLabels {
		r.Admit(fmt.Sprint(i), create, numbered(i))
		r.Admit(fmt.Sprint(i), create, key("a"))
	}
	r.Admit("\xff", create, key("a"))
	lines := scraped(r.GomegaWithT, r.Limiter)
	r.Expect(lines).To(HaveLen(4 * (maxLabels + 1)))
	r.Expect(lines).To(ContainElement(fmt.Sprintf("calls_delayed_total Create other %d", 2*maxLabels)))
	r.passes(2 * idleAfter)
	r.Admit("new", create, key("b"))
	r.passes(idleAfter)
	r.Admit("new", create, key("b"))
	r.Expect(r.labels).To(Equal(map[string]int{"new": 1}))
	r.Expect(scraped(r.GomegaWithT, r.Limiter)).To(HaveLen(4))
}

// A pair that is used is not dropped, and a limit scope without metrics of its own gets them once there is room.
func TestWhoseMetricsAreDropped(t *testing.T) {
	r := newRig(t, one(1, 1))
	for i := range maxLabels {
		r.Admit(fmt.Sprint(i), create, numbered(i))
	}
	use := func(kind driver.CallKind, after time.Duration) {
		r.passes(after)
		r.Admit("s", kind, key("a"))
	}
	use(create, 0)
	kept := r.buckets[pair{"s", create}]
	r.Expect(kept.label).To(Equal(otherLabel))
	use(create, 40*time.Minute)
	use(read, 21*time.Minute)
	r.Expect(r.buckets[pair{"s", create}]).To(BeIdenticalTo(kept))
	r.Expect(r.labels).To(Equal(map[string]int{"s": 1}))
	use(read, 29*time.Minute)
	use(read, 11*time.Minute)
	r.Expect(r.buckets).To(HaveLen(1))
	r.Expect(r.labels).To(Equal(map[string]int{"s": 1}))
}

func TestMetricsKeepNoLimiterAlive(t *testing.T) {
	g := NewWithT(t)
	p := weak.Make(New(newRig(t, nil).fake, map[driver.CallKind]driver.Rate{}))
	g.Eventually(func() *Limiter {
		runtime.GC()
		return p.Value()
	}).Should(BeNil())
	New(newRig(t, nil).fake, nil)
	g.Expect(collector.all).NotTo(HaveKey(p))
}
