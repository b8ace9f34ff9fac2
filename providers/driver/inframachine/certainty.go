package inframachine

import (
	"time"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// launchedAt is when the launch was last asked for. An object whose record was lost is as old as
// itself.
func (s *scope[M]) launchedAt() time.Time {
	if s.launched.LastCall != nil {
		return *s.launched.LastCall
	}
	return s.Object.GetCreationTimestamp().Time
}

// launchTimeout is the time from the launch to running.
func (s *scope[M]) launchTimeout() time.Duration {
	timeout := driverv1.DefaultLaunchTimeoutSeconds
	if t := s.Object.CommonSpec().LaunchTimeoutSeconds; t != nil {
		timeout = *t
	}
	return time.Duration(timeout) * time.Second
}

// grace is how long after a launch the absence of its instance proves nothing, if it has never been seen. Where reads show
// every finished call, that is only until there is a list that began after the launch, and as long as a call whose answer was
// lost may still be on its way.
func (r *Reconciler[M]) grace(s *scope[M]) time.Duration {
	switch {
	case !r.traits.StrongReads:
		return r.Options.VisibilityGrace
	case s.handle.ProviderID != "" || s.launched.Operation != "":
		return 2 * r.Options.ListFast
	}
	return 2 * r.Options.CallTimeout
}

// settleGrace is how long after a launch an instance that was seen may be missing again where reads lag: they are answered by different
// servers, which have not all heard of it.
const settleGrace = time.Minute

// graceOf is the grace, which ends early if the instance has been seen, and at once if the cloud has agreed to terminate it.
func (r *Reconciler[M]) graceOf(s *scope[M]) time.Duration {
	switch {
	case s.view.Known && hasEnded(s.view.Instance.State), s.Object.CommonStatus().InstanceState == driverv1.InstanceTerminating:
		return 0
	case !s.wasSeen():
		return r.grace(s)
	case r.traits.StrongReads:
		return 0
	}
	return min(settleGrace, r.grace(s))
}

// graceLeft is how long after that time the absence of the instance still proves nothing; zero if it does.
func (r *Reconciler[M]) graceLeft(s *scope[M], at time.Time) time.Duration {
	return max(s.launchedAt().Add(r.graceOf(s)).Sub(at), 0)
}

// wasSeen returns whether the cloud has shown the instance, other than in its answer to the launch, and no list shows it now:
// then it has not just failed to get into what the cloud reads.
func (s *scope[M]) wasSeen() bool {
	if s.view.Listed {
		return false
	}
	status := s.Object.CommonStatus()
	if s.view.EverListed || status.IsProvisioned() {
		return true
	}
	switch status.InstanceState {
	case driverv1.InstanceRunning, driverv1.InstanceStopping, driverv1.InstanceStopped, driverv1.InstanceTerminating,
		driverv1.InstanceTerminated, driverv1.InstanceFailed, driverv1.InstanceMissing:
		return true
	case driverv1.InstancePending:
	}
	return false
}

// dropEarlier drops from the view what a list from before the launch shows under the provider ID: the instance of an earlier attempt. Where
// instances are found by names, attempts at the same place have the same provider ID.
func (s *scope[M]) dropEarlier() {
	i, last := s.view.Instance, s.launched.LastCall
	if s.view.Listed && last != nil && s.view.ListedAt.Before(*last) && s.handle.Name != "" && i.Token != "" && i.Token != s.handle.Token {
		s.view.Instance, s.view.Known, s.view.Listed = driver.Instance{}, false, false
	}
}
