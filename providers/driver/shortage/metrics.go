package shortage

import (
	"maps"
	"sync"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// collector reads the metrics from the memories, so that they end with the shortages.
var collector = &memories{
	present: describe("millwright_cloud_shortages",
		"Number of shortages of capacity or quota that are remembered now, by what lacked; without instance type and market those of a place's own, such as addresses of a subnet; without failure domain those of a quota."),
	refused: describe("millwright_cloud_capacity_refusals_total",
		"Number of launches that the cloud refused for lack of capacity, by what was asked for; dropped a day after the latest."),
	all: map[weak.Pointer[Memory]]struct{}{},
}

func init() {
	metrics.Registry.MustRegister(collector)
}

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"limit_scope", "instance_type", "failure_domain", "market"}, nil)
}

// memories implements prometheus.Collector for all Memories of the process, which do not live on because of it.
type memories struct {
	present, refused *prometheus.Desc

	mu  sync.Mutex
	all map[weak.Pointer[Memory]]struct{}
}

func (c *memories) add(m *Memory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.all, func(p weak.Pointer[Memory], _ struct{}) bool { return p.Value() == nil })
	c.all[weak.Make(m)] = struct{}{}
}

// Describe implements prometheus.Collector.
func (c *memories) Describe(out chan<- *prometheus.Desc) {
	out <- c.present
	out <- c.refused
}

// Collect implements prometheus.Collector. What several Memories, which tests have, have in common is summed up.
func (c *memories) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	present, refused := map[offering]int{}, map[offering]int{}
	for p := range c.all {
		if m := p.Value(); m != nil {
			m.measure(present, refused)
		}
	}
	send(out, c.present, prometheus.GaugeValue, present)
	send(out, c.refused, prometheus.CounterValue, refused)
}

func send(out chan<- prometheus.Metric, desc *prometheus.Desc, kind prometheus.ValueType, counts map[offering]int) {
	for of, n := range counts {
		metric, err := prometheus.NewConstMetric(desc, kind, float64(n), of.limitScope, of.instanceType, of.failureDomain, of.market)
		if err == nil { // Else a label is no UTF-8: one metric less is better than none at all.
			out <- metric
		}
	}
}

// measure adds what is remembered now.
func (m *Memory) measure(present, refused map[offering]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.present()
	for of := range m.since {
		present[of.offering]++
	}
	for of, r := range m.refusals {
		refused[of] += r.count
	}
}
