package inframachine

import (
	"context"

	"github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// refusedAfterLaunch begins a new attempt after the cloud has ended the instance before it ran, for lack of capacity or because
// of a quota, as if it had refused the launch: no machine has come to life, and the bootstrap data is not used up. The status says first that the instance
// has ended, since the API lets no other ID go. Then one patch, which fails if the object is not the latest, takes the ID back
// and closes the attempt, so the step may be repeated at any time.
func (r *Reconciler[M]) refusedAfterLaunch(ctx context.Context, s *scope[M], i driver.Instance) outcome {
	err := &driver.Error{Class: i.Refused, Operation: "Launch", Code: i.StateCode, Err: errors.Errorf(
		"the cloud accepted the launch in %s and ended the instance before it ran: %s", i.FailureDomain, i.StateMessage)}
	why := explain(err)
	if !r.mayRelaunch(s, i) {
		s.facts.failure = &reasoned{refusedLateReason(i), err.Error() +
			". Not tried again under this Machine, which knows the instance already; replace the Machine"}
		r.Inventory.Forget(s.key)
		return done()
	}
	s.facts.standing = why
	if s.obj.CommonStatus().InstanceState != driverv1.InstanceTerminated {
		return untilDeadline(conflictRetry)
	}
	base, ok := s.obj.DeepCopyObject().(client.Object)
	if !ok {
		return failed(errors.Errorf("%s is not an object", r.Kind))
	}
	record := s.launched.afterEnded()
	s.obj.CommonSpec().ProviderID = ""
	if err := record.writeTo(s.obj); err != nil {
		return failed(err)
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, s.obj, patch); err != nil {
		return failed(errors.Wrapf(err, "closing the launch of %s %s", r.Kind, s.key))
	}
	s.launched = record
	r.Inventory.Forget(s.key)
	r.places.Withdraw(s.machine())
	s.announceWarning(eventLaunchFailed, "Launch", "%s", why.message)
	return untilDeadline(r.backoff.failTimes(s.key, err, record.Ended))
}

// refusedLateReason is the reason of a launch that was refused after it had been accepted.
func refusedLateReason(i driver.Instance) string {
	if i.Refused == driver.ClassQuota {
		return driverv1.QuotaExceededReason
	}
	return driverv1.InsufficientCapacityReason
}

// mayRelaunch says whether the instance is the one that this object's latest attempt made, and its Machine wants one and has
// not heard of any: a Machine never gets another provider ID.
func (r *Reconciler[M]) mayRelaunch(s *scope[M], i driver.Instance) bool {
	return s.launchedErr == nil && s.launched.Placement != "" && i.Token == s.launched.token(s.key.String()) &&
		s.owner != nil && s.owner.DeletionTimestamp.IsZero() && s.owner.Spec.ProviderID == "" && r.refersTo(s.owner, s)
}
