package inframachine

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// awaitDependants waits until what was launched with the instance is gone too.
func (r *Reconciler[M]) awaitDependants(_ context.Context, s *scope[M]) outcome.Outcome {
	s.observed.state = &explanation{driverv1.WaitingForDependantsReason,
		"The instance is gone; checking what was launched with it"}
	if refusal := persist.Refusal(r.backoff.latest(s.Key())); refusal != "" { // Of the removal of the finalizer.
		s.observed.state = explainRefusal(refusal)
	}
	answer, answered := r.cleanups.Take(s.Key(), s.handle)
	if !answered {
		if wait, err := r.backoff.remaining(s.Key()); wait > 0 {
			if persist.Refusal(err) == "" {
				s.observed.state = explainDependants(err)
			}
			return outcome.WaitFor(wait)
		}
		return r.awaitAnswer(s, r.cleanups.Ask(s.Key(), s.handle), s.observed.state)
	}
	err := answer.Err
	if err == nil && len(answer.Value) > 0 {
		err = driver.NewUnknownError("", "", &dependantsError{answer.Value})
	}
	if err != nil {
		s.observed.state = explainDependants(err)
		return outcome.WaitFor(r.backoff.fail(s.Key(), err))
	}
	return outcome.Continue()
}

// dependantsError names what is left. It is kept as the latest failure, for the condition.
type dependantsError struct{ remaining []string }

func (e *dependantsError) Error() string { return strings.Join(e.remaining, ", ") }

func dependantsOf(err error) *dependantsError {
	var d *dependantsError
	if errors.As(err, &d) {
		return d
	}
	return nil
}

func explainDependants(err error) *explanation {
	if d := dependantsOf(err); d != nil {
		return &explanation{driverv1.WaitingForDependantsReason, fmt.Sprintf(
			"The instance is gone; waiting for the cloud to delete %s. What stays for long must be deleted by hand", d)}
	}
	if driver.IsAuth(err) {
		return explainUnseen(err)
	}
	return explain(err)
}
