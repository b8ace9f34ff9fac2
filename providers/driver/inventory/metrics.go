package inventory

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// measured are the inventories that are at work when the metrics are read, so that also a list that hangs shows.
var measured = &collector{
	age: prometheus.NewDesc(
		"millwright_inventory_age_seconds",
		"Time since the latest list of a scope's instances began that lacked no failure domain or, without one, since this process has tried. Scopes without machines have none.",
		[]string{"scope"},
		nil,
	),
	instances: prometheus.NewDesc(
		"millwright_instances",
		"Number of instances with a mark, of whatever installation, in the latest list of a scope, by their state. Scopes without machines have none.",
		[]string{"scope", "state"},
		nil,
	),
	running: map[*Inventory]struct{}{},
}

func init() {
	metrics.Registry.MustRegister(measured)
}

type collector struct {
	age, instances *prometheus.Desc

	mu      sync.Mutex
	running map[*Inventory]struct{}
}

// measurement is what is measured of a scope.
type measurement struct {
	age    float64
	states map[driverv1.InstanceState]int
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- c.age
	descriptions <- c.instances
}

// Collect implements prometheus.Collector. Of several inventories with one scope, which tests have, the oldest counts.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest := map[string]measurement{}
	for i := range c.running {
		for name, m := range i.measure() {
			if known, ok := oldest[name]; !ok || known.age < m.age {
				oldest[name] = m
			}
		}
	}
	for name, m := range oldest {
		out <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, m.age, name)
		for state, count := range m.states {
			out <- prometheus.MustNewConstMetric(c.instances, prometheus.GaugeValue, float64(count), name, string(state))
		}
	}
}

func (c *collector) add(i *Inventory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[i] = struct{}{}
}

func (c *collector) remove(i *Inventory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, i)
}

// measure returns, for each scope with machines, for how many seconds it has not been listed, and how many instances the latest list has
// in which state.
func (i *Inventory) measure() map[string]measurement {
	i.mu.Lock()
	defer i.mu.Unlock()
	scopes := map[string]measurement{}
	for name, s := range i.scopes {
		s.mu.Lock()
		if len(s.tracked) > 0 {
			scopes[name.String()] = measurement{s.opts.Clock.Now().Sub(s.unlistedSince()).Seconds(), s.states()}
		}
		s.mu.Unlock()
	}
	return scopes
}

// states counts what is listed by state. s.mu is held.
func (s *scope) states() map[driverv1.InstanceState]int {
	counts := map[driverv1.InstanceState]int{}
	for _, instance := range s.listed {
		counts[instance.With(s.statuses[instance.ProviderID]).State]++
	}
	return counts
}
