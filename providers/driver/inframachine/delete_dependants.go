package inframachine

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// awaitDependants waits until what was launched with the instance is gone too.
func (r *Reconciler[M]) awaitDependants(_ context.Context, s *scope[M]) outcome {
	s.facts.standing = &reasoned{driverv1.WaitingForDependantsReason,
		"The instance is gone; checking what was launched with it"}
	answer, answered := r.dependants.Take(s.key, s.handle)
	if !answered {
		if wait, err := r.backoff.remaining(s.key); wait > 0 {
			s.facts.standing = dependantsRemain(err)
			return untilDeadline(wait)
		}
		return r.awaitAnswer(s, r.dependants.Ask(s.key, s.handle), s.facts.standing)
	}
	err := answer.Err
	if err == nil && len(answer.Value) > 0 {
		err = driver.NewUnknownError("", "", &dependantsError{answer.Value})
	}
	if err != nil {
		s.facts.standing = dependantsRemain(err)
		return untilDeadline(r.backoff.fail(s.key, err))
	}
	return proceed()
}

// dependantsError says what is left. It is kept as the latest failure, for the condition's sake.
type dependantsError struct{ remaining []string }

func (e *dependantsError) Error() string { return strings.Join(e.remaining, ", ") }

func dependantsRemain(err error) *reasoned {
	var d *dependantsError
	if errors.As(err, &d) {
		return &reasoned{driverv1.WaitingForDependantsReason, fmt.Sprintf(
			"The instance is gone; waiting for the cloud to delete %s. What stays for long must be deleted by hand", d)}
	}
	return explain(err)
}
