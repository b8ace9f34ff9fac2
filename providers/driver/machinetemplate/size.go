package machinetemplate

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// checkNeed ends the work on a template that is paused, being deleted, or whose size is known.
func (r *Reconciler[T]) checkNeed(_ context.Context, s *scope[T]) outcome.Outcome {
	if len(paused.By(s.Object, nil)) > 0 || s.Deleting() || known(s.Object.CommonStatus()) {
		return outcome.Wait()
	}
	return outcome.Continue()
}

func known(status *driverv1.MachineTemplateStatus) bool {
	return len(status.Capacity) > 0 && meta.IsStatusConditionTrue(status.Conditions, driverv1.CapacityKnownCondition)
}

// checkIdentity finds out whether the template may use the identity that it names. If not, no request is sent, and the status reports it;
// watches bring the template back.
func (r *Reconciler[T]) checkIdentity(ctx context.Context, s *scope[T]) outcome.Outcome {
	refused, err := r.Identities.Check(ctx, s.Object, false)
	s.refused = refused
	return outcome.FromError(err)
}

// holdBack waits until the latest failure may be tried again.
func (r *Reconciler[T]) holdBack(_ context.Context, s *scope[T]) outcome.Outcome {
	if s.refused != nil {
		return outcome.Continue()
	}
	return r.retries.held(s.Object, s.Now)
}

// askSize asks the cloud. That it fails does not end the steps: the status reports why.
func (r *Reconciler[T]) askSize(ctx context.Context, s *scope[T]) outcome.Outcome {
	if s.refused != nil {
		return outcome.Continue()
	}
	ctx, cancel := context.WithTimeout(ctx, r.CallTimeout)
	defer cancel()
	err := r.limited(ctx, s.Object, func(ctx context.Context) (err error) {
		s.size, err = r.Sizer.Size(ctx, s.Object)
		return err
	})
	s.failure = driver.WithoutEffect(err)
	return outcome.Continue()
}

// limited makes a call when its turn has come: a cloud that throttles the reads for machines is not asked for templates, and one that
// throttles these is asked less for both.
func (r *Reconciler[T]) limited(ctx context.Context, template T, call func(context.Context) error) error {
	if r.Limiter == nil {
		return call(ctx)
	}
	return r.Limiter.Do(ctx, r.LimitScope(template), driver.CallRead, call)
}

// retryLater remembers a failure that has been reported. The condition explains it, so it is not logged as well.
func (r *Reconciler[T]) retryLater(_ context.Context, s *scope[T]) outcome.Outcome {
	if s.failure != nil {
		return r.retries.failed(s.Object, s.failure, r.Clock.Now())
	}
	r.retries.forget(s.Key())
	return outcome.Continue()
}
