package orphans

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/providers/driver"
)

var (
	unmarked = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_launches_without_lineage_total",
		Help: "Number of launches without a lineage, since its record could not be read or written. Such instances are not collected before they are marked.",
	}, []string{"kind"})

	assessments = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "millwright_orphans",
		Help: "Number of instances, and of what was left behind by instances, in the latest complete scan of a scope, by what was concluded about them.",
	}, []string{"kind", "scope", "assessment"})

	deletions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_orphan_deletions_total",
		Help: "Number of orphans that the cloud has agreed to delete.",
	}, []string{"kind", "scope", "what"})

	failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_orphan_deletion_failures_total",
		Help: "Number of failed attempts to delete an orphan, by the class of the error.",
	}, []string{"kind", "scope", "class"})

	scansFailed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_orphan_scan_failures_total",
		Help: "Number of scans that have concluded nothing, since the API server could not be read or the record of the installation could not be written.",
	}, []string{"kind"})

	remarked = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_lineages_written_total",
		Help: "Number of instances whose lineage was rewritten: after a move, an upgrade or the restore of a backup.",
	}, []string{"kind", "scope"})

	remarkFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_lineage_failures_total",
		Help: "Number of failed attempts to write the lineage of an instance again, by the class of the error. Until then it is not collected.",
	}, []string{"kind", "scope", "class"})

	ages = &ageCollector{
		description: prometheus.NewDesc(
			"millwright_orphan_scan_age_seconds",
			"Time since the latest complete scan of a scope for orphans or, without one, since this process has tried. Without a scope: since the API server could be read.",
			[]string{"kind", "scope"},
			nil,
		),
		running: map[*Collector]struct{}{},
	}
)

func init() {
	metrics.Registry.MustRegister(unmarked, assessments, deletions, failures, scansFailed, remarked, remarkFailures, ages)
}

// Unmarked counts a launch without a lineage.
func Unmarked(kind string) { unmarked.WithLabelValues(kind).Inc() }

// allAssessments are those that are measured.
var allAssessments = append([]Assessment{Claimed, Foreign, Young, SeenOnce, Paused, NotAllowed}, reported...)

func measure(kind string, in driver.Scope, counts map[Assessment]int) {
	for _, v := range allAssessments {
		assessments.WithLabelValues(kind, in.String(), string(v)).Set(float64(counts[v]))
	}
}

// ageCollector measures the collectors that are at work when the metrics are read, so that a scan that hangs shows, too.
type ageCollector struct {
	description *prometheus.Desc

	mu      sync.Mutex
	running map[*Collector]struct{}
}

// Describe implements prometheus.Collector.
func (a *ageCollector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- a.description }

// Collect implements prometheus.Collector. Of several collectors with one scope, which tests have, the oldest counts.
func (a *ageCollector) Collect(out chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	type where struct{ kind, scope string }
	oldest := map[where]float64{}
	for c := range a.running {
		for name, age := range c.ages() {
			key := where{c.Kind, name.String()}
			oldest[key] = max(oldest[key], age)
		}
	}
	for key, age := range oldest {
		out <- prometheus.MustNewConstMetric(a.description, prometheus.GaugeValue, age, key.kind, key.scope)
	}
}

func (a *ageCollector) add(c *Collector) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[c] = struct{}{}
}

func (a *ageCollector) remove(c *Collector) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, c)
}

// ages returns the seconds since the latest complete scan of each scope.
func (c *Collector) ages() map[driver.Scope]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	seconds := map[driver.Scope]float64{{}: c.Clock.Since(c.concluded).Seconds()}
	for name, s := range c.scopes {
		seconds[name] = c.Clock.Since(s.since).Seconds()
	}
	return seconds
}
