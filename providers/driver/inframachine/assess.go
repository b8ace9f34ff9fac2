package inframachine

import (
	"fmt"
	"slices"
	"time"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inventory"
)

// observation is what is known about an instance that was launched.
type observation struct {
	view inventory.View
	// launchedAt is when the launch was last asked for.
	launchedAt time.Time
	// provisioned is true if the instance has been seen running.
	provisioned bool
	// statusLost is true if this object has no record of its own of whether the instance has run: it was moved, restored from a
	// backup, or has adopted the instance.
	statusLost bool
	// asOf is when the instance was last read: it may be long ago, if the cloud does not answer.
	asOf time.Time
	// launchTimeout is the time from launch to running; grace the time in which absence proves nothing.
	launchTimeout, grace time.Duration
}

// assessment is what follows from a observation.
type assessment struct {
	// why is the reason and message of the state; nil to leave conditions as they are.
	why *explanation
	// failure is true if the machine has failed permanently.
	failure bool
	// relaunch is true if the cloud has ended the instance before it ran as if it had refused it: another may be launched.
	relaunch bool
	// confirm asks for a live read: the instance seems to be gone.
	confirm bool
	// inTransition is true if the state is to change soon.
	inTransition bool
	// after is when time alone changes the assessment; zero for never.
	after time.Duration
}

// assess maps the state of an instance to an assessment. An instance that ended is never brought back.
func assess(s observation, now time.Time) assessment {
	grace := s.launchedAt.Add(s.grace).Sub(now)
	if !s.view.Known || (!s.view.Listed && !s.view.ListedAt.IsZero() && grace <= 0) {
		return assessAbsent(s, grace)
	}
	a := assessKnown(s, now)
	if !s.view.Listed && grace > 0 && (a.after == 0 || grace < a.after) {
		a.after = grace
	}
	return a
}

func assessKnown(s observation, now time.Time) assessment {
	i := s.view.Instance
	switch i.State {
	case driverv1.InstanceRunning:
		return assessment{why: &explanation{driverv1.InstanceRunningReason, ""}}
	case driverv1.InstanceTerminating, driverv1.InstanceTerminated:
		if slices.Contains(relaunched, i.Refused) && !s.provisioned {
			return assessRefused(s, now)
		}
		return assessEnded(i, s.provisioned)
	case driverv1.InstanceFailed:
		return assessFailed(s)
	case driverv1.InstanceStopping:
		return assessStopped(s, now, assessment{inTransition: true, why: &explanation{driverv1.InstanceStoppingReason,
			"The instance is being stopped, not by this provider" + detail(i)}})
	case driverv1.InstanceStopped:
		if i.Interrupted {
			return assessEnded(i, s.provisioned) // It may come back, with nothing that ran on it: the Machine is to be replaced.
		}
		return assessStopped(s, now, assessment{why: &explanation{driverv1.InstanceStoppedReason,
			"The instance is stopped" + detail(i) + ". It is not started again: start it in the cloud or delete the Machine"}})
	case driverv1.InstancePending, driverv1.InstanceMissing:
	}
	return withTimeout(s, now, assessment{inTransition: true, why: &explanation{driverv1.InstancePendingReason,
		"The cloud is starting the instance" + detail(i)}})
}

// assessAbsent assesses an instance that is in no list; grace is how long that still proves nothing.
func assessAbsent(s observation, grace time.Duration) assessment {
	a := assessment{inTransition: !s.provisioned}
	if !s.provisioned {
		a.why = &explanation{
			driverv1.InstanceNotVisibleReason,
			"The instance was launched and the cloud does not list it yet" + listError(s.view.Err),
		}
	}
	if s.view.ListedAt.IsZero() {
		return a // The first list enqueues the machine.
	}
	if grace > 0 {
		a.after = grace
		return a
	}
	a.confirm = true
	return a
}

// assessFailed assesses an instance that the cloud could not finish. One that has run may run still, whatever the cloud reports.
func assessFailed(s observation) assessment {
	i := s.view.Instance
	switch {
	case s.provisioned:
		return assessment{why: &explanation{driverv1.InstanceFailedReason, "The cloud reports that the instance has failed" + detail(i)}}
	case slices.Contains(relaunched, i.Refused):
		return assessment{relaunch: true}
	}
	return assessEnded(i, false)
}

// assessRefused assesses an instance that the cloud ends before it ran, for lack of capacity or because of a quota. Only when it
// has ended permanently may there be another.
func assessRefused(s observation, now time.Time) assessment {
	if s.view.Instance.State == driverv1.InstanceTerminated {
		return assessment{relaunch: true}
	}
	reason := explain(lateFailure(driver.Placement{}, s.view.Instance)).reason
	return withTimeout(s, now, assessment{inTransition: true, why: &explanation{reason,
		"The cloud is terminating the instance before it ran" + detail(s.view.Instance)}})
}

func assessEnded(i driver.Instance, provisioned bool) assessment {
	a := assessment{failure: true}
	switch {
	case i.Interrupted:
		a.why = &explanation{driverv1.InstanceInterruptedReason, "The cloud took the instance back" + detail(i)}
	case !provisioned:
		a.why = &explanation{driverv1.InstanceLaunchFailedReason, "The instance ended before it ran" + detail(i)}
	default:
		a.why = &explanation{driverv1.InstanceTerminatedReason, "The instance was terminated, not by this provider" + detail(i)}
	}
	return a
}

// assessStopped assesses an instance that is stopped or about to be. One of which the object cannot know whether it has run before
// is not taken for one that has not.
func assessStopped(s observation, now time.Time, a assessment) assessment {
	if s.statusLost {
		return a
	}
	return withTimeout(s, now, a)
}

// rereadLate is when an instance is assessed again whose time is over, and which has not been read since.
const rereadLate = 10 * time.Second

// withTimeout turns the assessment of an instance that has never run into a failure once its time is over. While the cloud
// cannot be read it may have begun to run.
func withTimeout(s observation, now time.Time, a assessment) assessment {
	if s.provisioned {
		return a
	}
	deadline := s.launchedAt.Add(s.launchTimeout)
	if s.asOf.Before(deadline) {
		a.after = max(deadline.Sub(now), rereadLate)
		return a
	}
	return assessment{failure: true, why: &explanation{driverv1.InstanceLaunchTimeoutReason,
		fmt.Sprintf("The instance is %s and did not run within %s of its launch", s.view.Instance.State, s.launchTimeout)}}
}

// vanished is the assessment of an instance whose absence a live read has confirmed.
func vanished() assessment {
	return assessment{failure: true, why: &explanation{driverv1.InstanceVanishedReason,
		"The cloud does not know the instance any more. It is not launched again under the same Machine"}}
}

// detail returns the cloud's explanation of a state.
func detail(i driver.Instance) string {
	switch {
	case i.StateCode == "" && i.StateMessage == "":
		return ""
	case i.StateMessage == "":
		return ": " + i.StateCode
	case i.StateCode == "":
		return ": " + i.StateMessage
	}
	return ": " + i.StateCode + ": " + i.StateMessage
}

func listError(err error) string {
	if err == nil {
		return ""
	}
	return "; listing instances fails: " + err.Error()
}
