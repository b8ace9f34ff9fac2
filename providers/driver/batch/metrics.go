package batch

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/providers/driver"
)

var (
	size = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "millwright_cloud_batch_size",
		Help:    "Number of instances in one batch of requests to the cloud, by operation (terminate, cleanup, operations) and scope; its count is that of the batches.",
		Buckets: []float64{1, 2, 5, 10, 20, 50, 100},
	}, []string{"operation", "scope"})

	waited = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "millwright_cloud_batch_wait_seconds",
		Help:    "Time from the request of a machine to the call of its batch, throttling included, by operation and scope.",
		Buckets: prometheus.ExponentialBuckets(0.1, 2, 10),
	}, []string{"operation", "scope"})
)

func init() {
	metrics.Registry.MustRegister(size, waited)
}

func (b *Batcher[T]) measure(scope driver.Scope, asked []*request[T], began time.Time) {
	size.WithLabelValues(b.operation, scope.String()).Observe(float64(len(asked)))
	for _, a := range asked {
		waited.WithLabelValues(b.operation, scope.String()).Observe(began.Sub(a.since).Seconds())
	}
}
