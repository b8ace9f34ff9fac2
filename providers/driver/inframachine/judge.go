package inframachine

import (
	"fmt"
	"time"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inventory"
)

// sighting is what is known of an instance that was launched.
type sighting struct {
	view inventory.View
	// launchedAt is when the launch was last asked for.
	launchedAt time.Time
	// provisioned says that the instance has been seen running.
	provisioned bool
	// statusLost says that this object has no record of its own of whether the instance has run: it was moved, restored from a
	// backup, or has adopted the instance.
	statusLost bool
	// launchTimeout is the time from launch to running; grace the time in which absence proves nothing.
	launchTimeout, grace time.Duration
}

// verdict is what follows from a sighting.
type verdict struct {
	// why is the reason and message of the state; nil to leave conditions as they are.
	why *reasoned
	// failure says that the machine has failed for good.
	failure bool
	// relaunch says that the cloud has ended the instance before it ran as if it had refused it: another may be launched.
	relaunch bool
	// confirm asks for a live read: the instance seems to be gone.
	confirm bool
	// inTransition says that the state is to change soon.
	inTransition bool
	// after is when time alone changes the verdict; zero for never.
	after time.Duration
}

// judge maps the state of an instance to a verdict. An instance that ended is never brought back.
func judge(s sighting, now time.Time) verdict {
	grace := s.launchedAt.Add(s.grace).Sub(now)
	if !s.view.Known || (!s.view.Listed && !s.view.ListedAt.IsZero() && grace <= 0) {
		return judgeAbsent(s, grace)
	}
	v := judgeKnown(s, now)
	if !s.view.Listed && grace > 0 && (v.after == 0 || grace < v.after) {
		v.after = grace
	}
	return v
}

func judgeKnown(s sighting, now time.Time) verdict {
	i := s.view.Instance
	switch i.State {
	case driverv1.InstanceRunning:
		return verdict{why: &reasoned{driverv1.InstanceRunningReason, ""}}
	case driverv1.InstanceTerminating, driverv1.InstanceTerminated:
		if i.Refused != "" && !s.provisioned {
			return judgeRefused(s, now)
		}
		return judgeEnded(i, s.provisioned)
	case driverv1.InstanceStopping:
		return judgeStopped(s, now, verdict{inTransition: true, why: &reasoned{driverv1.InstanceStoppingReason,
			"The instance is being stopped, by somebody else" + detail(i)}})
	case driverv1.InstanceStopped:
		return judgeStopped(s, now, verdict{why: &reasoned{driverv1.InstanceStoppedReason,
			"The instance is stopped" + detail(i) + ". It is not started again: start it in the cloud or delete the Machine"}})
	case driverv1.InstancePending, driverv1.InstanceMissing:
	}
	return withTimeout(s, now, verdict{inTransition: true, why: &reasoned{driverv1.InstancePendingReason,
		"The cloud is starting the instance" + detail(i)}})
}

// judgeAbsent judges an instance that is in no list; grace is how long that still proves nothing.
func judgeAbsent(s sighting, grace time.Duration) verdict {
	v := verdict{inTransition: !s.provisioned}
	if !s.provisioned {
		v.why = &reasoned{driverv1.InstanceNotVisibleReason, "The instance was launched and the cloud does not list it yet" + listError(s.view.Err)}
	}
	if s.view.ListedAt.IsZero() {
		return v // The first list wakes the machine.
	}
	if grace > 0 {
		v.after = grace
		return v
	}
	v.confirm = true
	return v
}

// judgeRefused judges an instance that the cloud ends before it ran, for lack of capacity or because of a quota. Only when it
// has ended for good may there be another.
func judgeRefused(s sighting, now time.Time) verdict {
	if s.view.Instance.State == driverv1.InstanceTerminated {
		return verdict{relaunch: true}
	}
	return withTimeout(s, now, verdict{inTransition: true, why: &reasoned{refusedLateReason(s.view.Instance),
		"The cloud is ending the instance before it ran" + detail(s.view.Instance)}})
}

func judgeEnded(i driver.Instance, provisioned bool) verdict {
	v := verdict{failure: true}
	switch {
	case i.Interrupted:
		v.why = &reasoned{driverv1.InstanceInterruptedReason, "The cloud took the instance back" + detail(i)}
	case !provisioned:
		v.why = &reasoned{driverv1.InstanceLaunchFailedReason, "The instance ended before it ran" + detail(i)}
	default:
		v.why = &reasoned{driverv1.InstanceTerminatedReason, "The instance was terminated, not by this provider" + detail(i)}
	}
	return v
}

// judgeStopped judges an instance that is stopped or about to be. One of which the object cannot know whether it has run before
// is not taken for one that has not.
func judgeStopped(s sighting, now time.Time, v verdict) verdict {
	if s.statusLost {
		return v
	}
	return withTimeout(s, now, v)
}

// withTimeout makes the verdict on an instance that has never run a failure once its time is over.
func withTimeout(s sighting, now time.Time, v verdict) verdict {
	if s.provisioned {
		return v
	}
	if wait := s.launchedAt.Add(s.launchTimeout).Sub(now); wait > 0 {
		v.after = wait
		return v
	}
	return verdict{failure: true, why: &reasoned{driverv1.InstanceLaunchTimeoutReason,
		fmt.Sprintf("The instance is %s and did not run within %s of its launch", s.view.Instance.State, s.launchTimeout)}}
}

// vanished is the verdict on an instance whose absence a live read has confirmed.
func vanished() verdict {
	return verdict{failure: true, why: &reasoned{driverv1.InstanceVanishedReason,
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
