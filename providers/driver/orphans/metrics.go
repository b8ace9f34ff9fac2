package orphans

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var unmarked = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "millwright_launches_without_lineage_total",
	Help: "Number of launches without a lineage, since its record could not be read or written. Such instances are not collected before they are marked.",
}, []string{"kind"})

func init() {
	metrics.Registry.MustRegister(unmarked)
}

// Unmarked counts a launch without a lineage.
func Unmarked(kind string) { unmarked.WithLabelValues(kind).Inc() }
