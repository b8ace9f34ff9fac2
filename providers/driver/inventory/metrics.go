package inventory

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// ages measures the inventories that are at work when the metrics are read, so that also a list that hangs shows.
var ages = &ageCollector{
	description: prometheus.NewDesc(
		"millwright_inventory_age_seconds",
		"Time since the latest successful list of a scope's instances began or, without one, since this process has tried. Scopes without machines have none.",
		[]string{"scope"},
		nil,
	),
	running: map[*Inventory]struct{}{},
}

func init() {
	metrics.Registry.MustRegister(ages)
}

type ageCollector struct {
	description *prometheus.Desc

	mu      sync.Mutex
	running map[*Inventory]struct{}
}

// Describe implements prometheus.Collector.
func (c *ageCollector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.description }

// Collect implements prometheus.Collector. Of several inventories with one scope, which tests have, the oldest counts.
func (c *ageCollector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest := map[string]float64{}
	for i := range c.running {
		for name, age := range i.ages() {
			oldest[name] = max(oldest[name], age)
		}
	}
	for name, age := range oldest {
		out <- prometheus.MustNewConstMetric(c.description, prometheus.GaugeValue, age, name)
	}
}

func (c *ageCollector) add(i *Inventory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[i] = struct{}{}
}

func (c *ageCollector) remove(i *Inventory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, i)
}

// ages returns the seconds since when each scope with machines has not been listed.
func (i *Inventory) ages() map[string]float64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	seconds := map[string]float64{}
	for name, s := range i.scopes {
		s.mu.Lock()
		if len(s.tracked) > 0 {
			seconds[name.String()] = s.opts.Clock.Now().Sub(s.unlistedSince()).Seconds()
		}
		s.mu.Unlock()
	}
	return seconds
}
