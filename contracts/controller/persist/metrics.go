package persist

import (
	"reflect"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// expiredWaits counts what must not happen while watches are served: the event of a write brings a reconcile back within moments.
var expiredWaits = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "millwright_cache_waits_expired_total",
	Help: "Reconciles that waited half a minute for the cache to show the latest write of their object, and went ahead without it, by kind.",
}, []string{"kind"})

func init() { metrics.Registry.MustRegister(expiredWaits) }

// countExpired counts a reconcile of the object that no event has brought back.
func countExpired(obj client.Object) {
	expiredWaits.WithLabelValues(reflect.Indirect(reflect.ValueOf(obj)).Type().Name()).Inc()
}
