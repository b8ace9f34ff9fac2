package inframachine

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// outcome of a step. Its zero value stops and waits for an event.
type outcome struct {
	proceed bool
	after   time.Duration
	err     error
}

// proceed: the step has nothing left to do.
func proceed() outcome { return outcome{proceed: true} }

// done: nothing more is to be done for the object, until an event.
func done() outcome { return outcome{} }

// untilEvent: the object waits for something that is watched.
func untilEvent() outcome { return outcome{} }

// untilDeadline: the object waits for something that is watched, or else until d has passed.
func untilDeadline(d time.Duration) outcome { return outcome{after: max(d, time.Millisecond)} }

// failed: the API server refused or could not be reached; the queue's own backoff applies.
func failed(err error) outcome { return outcome{err: err} }

// conflictRetry is when an object is reconciled again that was not the latest when it was written: the
// cache has it by then.
const conflictRetry = 500 * time.Millisecond

// result turns the outcome into what controller-runtime expects. To lose a race is no error.
func (o outcome) result() (ctrl.Result, error) {
	switch {
	case apierrors.IsConflict(o.err):
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	case o.err != nil:
		return ctrl.Result{}, o.err
	}
	return ctrl.Result{RequeueAfter: o.after}, nil
}
