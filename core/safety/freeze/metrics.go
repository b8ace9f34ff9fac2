package freeze

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var frozenDesc = prometheus.NewDesc("millwright_clusters_frozen",
	"Clusters in which no Machine is replaced now, by the reason of their condition RemediationAllowed.", []string{"reason"}, nil)

// reasons are all that the metric can have, so that one that has ended is 0 and not absent.
var reasons = []string{TargetAPIServerUnreachableReason, RecoveringReason}

// collected has the Freezer of this process. There is one but in tests.
var collected = &collector{}

func init() { metrics.Registry.MustRegister(collected) }

type collector struct {
	mutex    sync.Mutex
	freezers []*Freezer
}

// Measure has the Freezer in the metrics of this process, until ctx ends.
func (f *Freezer) Measure(ctx context.Context) {
	collected.mutex.Lock()
	defer collected.mutex.Unlock()
	collected.freezers = append(collected.freezers, f)
	context.AfterFunc(ctx, func() {
		collected.mutex.Lock()
		defer collected.mutex.Unlock()
		collected.freezers = slices.DeleteFunc(collected.freezers, func(other *Freezer) bool { return other == f })
	})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- frozenDesc }

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.mutex.Lock()
	freezers := slices.Clone(c.freezers)
	c.mutex.Unlock()
	counts := map[string]int{}
	for _, f := range freezers {
		for reason, count := range f.counts() {
			counts[reason] += count
		}
	}
	for _, reason := range reasons {
		to <- prometheus.MustNewConstMetric(frozenDesc, prometheus.GaugeValue, float64(counts[reason]), reason)
	}
}

// counts are the Clusters that are frozen, by reason.
func (f *Freezer) counts() map[string]int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := f.clock.Now()
	counts := map[string]int{}
	for _, known := range f.clusters {
		if state := decide(known.history, now, f.options); known.counted && state.Active() {
			counts[state.Reason]++
		}
	}
	return counts
}
