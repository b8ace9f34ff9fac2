// Package outcome names what a step of a reconciler ends with, and runs steps in one of two ways.
//
// A step never returns an error to mean "not yet": it returns Wait when a watch will bring the object back,
// or WaitFor when a deadline must. Errors are failures, and the work queue backs off.
package outcome

import (
	"context"
	"time"

	kerrors "k8s.io/apimachinery/pkg/util/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/contracts/controller/persist"
)

// Outcome is what a step ends with. The zero value is Continue.
type Outcome struct {
	waiting bool
	after   time.Duration
	err     error
}

// Continue means that the step has nothing left to do.
func Continue() Outcome { return Outcome{} }

// Wait means that something else must happen first, and that a watch brings the object back when it has.
func Wait() Outcome { return Outcome{waiting: true} }

// WaitFor is Wait with a deadline, d from now, at which the object is reconciled again in any case.
// A duration that is not positive means at once.
func WaitFor(d time.Duration) Outcome {
	return Outcome{waiting: true, after: max(d, time.Millisecond)}
}

// ContinueAfter means that the step has nothing left to do now, and something after d.
func ContinueAfter(d time.Duration) Outcome {
	return Outcome{after: max(d, time.Millisecond)}
}

// FromError is Continue for nil; with an error the step could not do its work.
func FromError(err error) Outcome { return Outcome{waiting: err != nil, err: err} }

// Finished reports whether later steps of an ordered run may go ahead.
func (o Outcome) Finished() bool { return !o.waiting }

// Err returns the failure, nil when there was none.
func (o Outcome) Err() error { return o.err }

// After returns the deadline, zero when there is none.
func (o Outcome) After() time.Duration { return o.after }

// conflictRetry is when a reconcile is retried whose write was based on an outdated read. The watch usually brings the newer object sooner.
const conflictRetry = 500 * time.Millisecond

// Result turns the outcome into what controller-runtime expects. Failures that are conflicts alone only ask for another reconcile:
// to lose a race is no error.
func (o Outcome) Result() (ctrl.Result, error) {
	if o.err == nil {
		return ctrl.Result{RequeueAfter: o.after}, nil
	}
	if o.onlyConflicts() {
		return ctrl.Result{RequeueAfter: earliest(o.after, conflictRetry)}, nil
	}
	return ctrl.Result{}, o.err
}

// onlyConflicts reports whether the step has failed, and only because races were lost. What a webhook denies as a conflict is refused.
func (o Outcome) onlyConflicts() bool {
	return o.err != nil && kerrors.FilterOut(o.err, persist.LostRace) == nil
}

// And joins two outcomes: it waits if one does, fails if one does, and the earlier deadline holds.
func (o Outcome) And(other Outcome) Outcome {
	joined := Outcome{waiting: o.waiting || other.waiting, after: earliest(o.after, other.after)}
	switch {
	case o.err == nil:
		joined.err = other.err
	case other.err == nil:
		joined.err = o.err
	default:
		joined.err = kerrors.NewAggregate([]error{o.err, other.err})
	}
	return joined
}

// earliest returns the smaller of two durations, where zero means never.
func earliest(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// Step is one step of a reconciler over a scope S.
type Step[S any] func(ctx context.Context, scope S) Outcome

// All runs every step, whatever the others end with, and joins the outcomes. It suits observation, where
// what one step cannot see is no reason for another not to look.
func All[S any](ctx context.Context, scope S, steps ...Step[S]) Outcome {
	var joined Outcome
	for _, step := range steps {
		joined = joined.And(step(ctx, scope))
	}
	return joined
}

// InOrder runs the steps until one is not finished, and returns what that ended with. It suits teardown,
// where each step requires those before it.
func InOrder[S any](ctx context.Context, scope S, steps ...Step[S]) Outcome {
	var joined Outcome
	for _, step := range steps {
		joined = joined.And(step(ctx, scope))
		if !joined.Finished() {
			break
		}
	}
	return joined
}
