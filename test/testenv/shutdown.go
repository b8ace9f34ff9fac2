package testenv

import (
	"context"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// ShutdownTimeout is how long a manager in a test waits for its controllers to stop.
const ShutdownTimeout = 5 * time.Second

// Ended returns the error of a manager, except one: that it has given up waiting for a controller whose
// queue is deadlocked, as that of controller-runtime before v0.25 can be when it is shut down while it is full:
// https://github.com/kubernetes-sigs/controller-runtime/issues/3538. Such a controller does nothing any more.
func Ended(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "failed waiting for all runnables to end") {
		return nil
	}
	return err
}
