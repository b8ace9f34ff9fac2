package limit

import (
	"maps"
	"math"
	"sync"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// collector reads the metrics from the buckets, so that they show rates that recover by time, and end with the buckets.
var collector = &limiters{
	delayed: describe("millwright_cloud_calls_delayed_total",
		"Number of calls to the cloud that had to wait for their turn on this side, or were not made since it came too late, by limit scope and kind of call."),
	waited: describe("millwright_cloud_call_delay_seconds_total",
		"Seconds that calls to the cloud have waited for their turn on this side until they were made, by limit scope and kind of call."),
	closures: describe("millwright_cloud_throttle_pauses_total",
		"Number of times that the cloud throttled calls and those of the limit scope and kind were paused on this side."),
	rate: describe("millwright_cloud_call_rate_limit",
		"Calls per second that are admitted on this side now, by limit scope and kind: less than configured after the cloud throttled them, 0 during the pause; none without a limit."),
	all: map[weak.Pointer[Limiter]]struct{}{},
}

func init() {
	metrics.Registry.MustRegister(collector)
}

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"limit_scope", "kind"}, nil)
}

// limiters implements prometheus.Collector for all Limiters of the process, which do not live on because of it.
type limiters struct {
	delayed, waited, closures, rate *prometheus.Desc

	mu  sync.Mutex
	all map[weak.Pointer[Limiter]]struct{}
}

// measured is what is known of a limit scope and kind.
type measured struct {
	delayed, waited, closures, rate float64
}

func (c *limiters) add(l *Limiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.all, func(p weak.Pointer[Limiter], _ struct{}) bool { return p.Value() == nil })
	c.all[weak.Make(l)] = struct{}{}
}

// Describe implements prometheus.Collector.
func (c *limiters) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.delayed, c.waited, c.closures, c.rate} {
		out <- d
	}
}

// Collect implements prometheus.Collector. What several Limiters, or limit scopes without metrics of their own, have in
// common is summed up; of the rates the lowest counts.
func (c *limiters) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sums := map[pair]measured{}
	for p := range c.all {
		if l := p.Value(); l != nil {
			l.measure(sums)
		}
	}
	for p, m := range sums {
		labels := []string{p.scope, string(p.kind)}
		out <- prometheus.MustNewConstMetric(c.delayed, prometheus.CounterValue, m.delayed, labels...)
		out <- prometheus.MustNewConstMetric(c.waited, prometheus.CounterValue, m.waited, labels...)
		out <- prometheus.MustNewConstMetric(c.closures, prometheus.CounterValue, m.closures, labels...)
		if !math.IsInf(m.rate, 1) {
			out <- prometheus.MustNewConstMetric(c.rate, prometheus.GaugeValue, m.rate, labels...)
		}
	}
}

// measure adds what is known of all buckets.
func (l *Limiter) measure(sums map[pair]measured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	l.sweep(now)
	for p, b := range l.buckets {
		name := pair{b.label, p.kind}
		m, ok := sums[name]
		if !ok {
			m.rate = math.Inf(1)
		}
		rate := b.rate()
		if b.left(now) > 0 {
			rate = 0
		}
		sums[name] = measured{
			delayed:  m.delayed + float64(b.delayed),
			waited:   m.waited + b.waited.Seconds(),
			closures: m.closures + float64(b.closures),
			rate:     min(m.rate, rate),
		}
	}
}
