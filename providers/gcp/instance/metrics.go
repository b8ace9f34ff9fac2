package instance

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/providers/driver"
)

var (
	calls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_cloud_calls_total",
		Help: "Number of calls to the cloud's API, by action and result: ok or the class of the error. Each page of a list is a call.",
	}, []string{"cloud", "project", "action", "result"})

	callSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "millwright_cloud_call_seconds",
		Help:    "Time from a call to the cloud's API to its answer.",
		Buckets: prometheus.ExponentialBuckets(0.01, 2, 12),
	}, []string{"cloud", "project", "action"})
)

func init() {
	metrics.Registry.MustRegister(calls, callSeconds)
}

// measure counts a call that has ended.
func measure(scope driver.Scope, action string, began time.Time, err error) {
	result := "ok"
	if err != nil {
		result = string(driver.ClassOf(err))
	}
	calls.WithLabelValues("gcp", scope.Location, action, result).Inc()
	callSeconds.WithLabelValues("gcp", scope.Location, action).Observe(time.Since(began).Seconds())
}
