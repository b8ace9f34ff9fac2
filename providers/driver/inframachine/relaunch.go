package inframachine

import (
	"context"

	"github.com/pkg/errors"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// refusedAfterLaunch begins a new attempt after the cloud has ended the instance before it ran, for lack of capacity or because
// of a quota, as if it had refused the launch: no machine has run, and the bootstrap data has not been used. The status reports
// first that the instance has ended, since the API allows no other provider ID to be removed. Then one patch, which fails if the
// object is not the latest, removes the ID and closes the attempt, so the step may be repeated at any time.
func (r *Reconciler[M]) refusedAfterLaunch(ctx context.Context, s *scope[M], i driver.Instance) outcome.Outcome {
	err := &driver.Error{Class: i.Refused, Operation: "Launch", Code: i.StateCode, Err: errors.Errorf(
		"the cloud accepted the launch in %s and ended the instance before it ran: %s", i.FailureDomain, i.StateMessage)}
	why := explain(err)
	if !r.mayRelaunch(s, i) {
		s.observed.failure = &explanation{refusedLateReason(i), err.Error() +
			". Not tried again under this Machine, which knows the instance already; replace the Machine"}
		r.Inventory.Forget(s.Key())
		return outcome.Wait()
	}
	s.observed.state = why
	if s.Object.CommonStatus().InstanceState != driverv1.InstanceTerminated {
		return outcome.WaitFor(rereadDelay)
	}
	record := s.launched.afterEnded()
	if err := s.writeRecord(ctx, record, func(obj M) { obj.CommonSpec().ProviderID = "" }); err != nil {
		return outcome.FromError(err)
	}
	r.Inventory.Forget(s.Key())
	r.places.Withdraw(s.machine())
	s.events.Warning(eventLaunchFailed, "Launch", "%s", why.message)
	return outcome.WaitFor(r.backoff.failTimes(s.Key(), err, record.Ended))
}

// refusedLateReason is the reason of a launch that was refused after it had been accepted.
func refusedLateReason(i driver.Instance) string {
	if i.Refused == driver.ClassQuota {
		return driverv1.QuotaExceededReason
	}
	return driverv1.InsufficientCapacityReason
}

// mayRelaunch returns whether the instance is the one that this object's latest attempt made, and its Machine wants one and has
// none yet: a Machine never gets another provider ID.
func (r *Reconciler[M]) mayRelaunch(s *scope[M], i driver.Instance) bool {
	return s.launchedErr == nil && s.launched.Placement != "" && i.Token == s.launched.token(s.Key().String()) &&
		s.owner != nil && s.owner.DeletionTimestamp.IsZero() && s.owner.Spec.ProviderID == "" && r.refersTo(s.owner, s)
}
