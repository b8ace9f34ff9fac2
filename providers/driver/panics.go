package driver

import (
	"context"
	"runtime/debug"

	"github.com/pkg/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Recover makes a call of a Driver outside of a reconcile, where nothing else would recover from its panic: the process would end,
// and again after each start. A panic is logged with its stack and returned as an error of class Unknown.
func Recover(ctx context.Context, operation string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			ctrl.LoggerFrom(ctx).
				Error(errors.Errorf("panic: %v", p), "A call of the driver panicked", "operation", operation, "stack", string(debug.Stack()))
			err = NewUnknownError(operation, "", errors.New("the provider's driver panicked: report the stack in the provider's log"))
		}
	}()
	return call()
}
