package manager

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// Bounds of the delay after a reconcile that failed, which doubles. The upper one is less than controller-runtime's quarter of an
// hour: after a long outage of an API server everything should go on within a minute.
const minRetry, maxRetry = 5 * time.Millisecond, time.Minute

// ControllerOptions are the options of a controller with so many workers, whose queue holds requests of type R.
func ControllerOptions[R comparable](workers int) controller.TypedOptions[R] {
	return controller.TypedOptions[R]{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[R](minRetry, maxRetry),
	}
}
