package instance

import (
	"context"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/providers/driver"
)

var (
	calls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_cloud_calls_total",
		Help: "Number of calls to the cloud's API, by action and result: ok or the class of the error. Repetitions by the SDK within one call are not counted.",
	}, []string{"cloud", "region", "action", "result"})

	callSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "millwright_cloud_call_seconds",
		Help:    "Time from a call to the cloud's API to its answer.",
		Buckets: prometheus.ExponentialBuckets(0.01, 2, 12),
	}, []string{"cloud", "region", "action"})
)

func init() {
	metrics.Registry.MustRegister(calls, callSeconds)
}

// measuring counts and times all calls of a client.
func measuring(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("MillwrightMetrics", measure), middleware.After)
}

func measure(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	action, region := awsmiddleware.GetOperationName(ctx), awsmiddleware.GetRegion(ctx)
	began := time.Now()
	out, metadata, err := next.HandleInitialize(ctx, in)
	result := "ok"
	if err != nil {
		result = string(driver.ClassOf(classify(action, err)))
	}
	calls.WithLabelValues("aws", region, action, result).Inc()
	callSeconds.WithLabelValues("aws", region, action).Observe(time.Since(began).Seconds())
	return out, metadata, err
}
