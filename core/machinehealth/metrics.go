package machinehealth

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// maxMeasured is how many Clusters have a metric of their own: those with the most unhealthy Machines. Clusters can be created by
// anyone who may, so there must not be metrics without end.
const maxMeasured = 100

var unhealthyDesc = prometheus.NewDesc("millwright_machines_unhealthy",
	"Number of Machines that are judged unhealthy, by Cluster and by the reason of their condition HealthCheckSucceeded. "+
		"Only Clusters that have some, the 100 with the most.", []string{"cluster", "reason"}, nil)

// collected has what the rounds of this process have found.
var collected = &collector{}

func init() { metrics.Registry.MustRegister(collected) }

type collector struct {
	mu sync.Mutex
	of map[client.ObjectKey]map[string]int
}

// set notes the unhealthy Machines of a Cluster by reason.
func (c *collector) set(cluster client.ObjectKey, unhealthy map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(unhealthy) == 0 {
		delete(c.of, cluster)
		return
	}
	if c.of == nil {
		c.of = map[client.ObjectKey]map[string]int{}
	}
	c.of[cluster] = unhealthy
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) { to <- unhealthyDesc }

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clusters := make([]client.ObjectKey, 0, len(c.of))
	for key := range c.of {
		clusters = append(clusters, key)
	}
	slices.SortFunc(clusters, func(a, b client.ObjectKey) int {
		return cmp.Or(total(c.of[b])-total(c.of[a]), cmp.Compare(a.String(), b.String()))
	})
	for _, key := range clusters[:min(len(clusters), maxMeasured)] {
		for reason, number := range c.of[key] {
			to <- prometheus.MustNewConstMetric(unhealthyDesc, prometheus.GaugeValue, float64(number), key.String(), reason)
		}
	}
}

func total(numbers map[string]int) int {
	sum := 0
	for _, number := range numbers {
		sum += number
	}
	return sum
}
