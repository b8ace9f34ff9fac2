package inframachine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"millwright.dev/contracts/controller/events"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Reasons of events on the provider's machine.
const (
	// eventLaunched says that the cloud has accepted the launch and the provider ID is recorded.
	eventLaunched = "InstanceLaunched"
	// eventLaunchFailed says that the cloud has refused the launch, or its answer was lost.
	eventLaunchFailed = "InstanceLaunchFailed"
	// eventRunning says that the instance has been seen running for the first time.
	eventRunning = "InstanceRunning"
	// eventFailed says that the machine has failed for good.
	eventFailed = "MachineFailed"
	// eventSecond says that another live instance carries the mark of the object.
	eventSecond = "SecondInstance"
	// eventUnreachable says that the cloud's instances could not be listed for long. It is recorded once for all machines of a scope.
	eventUnreachable = "CloudUnreachable"
	// eventAbandoned says that the object went while its instance was launched, and what became of the instance.
	eventAbandoned = "InstanceAbandoned"
	// eventRefused says that the API server refuses the status, in which everything else is said.
	eventRefused = "StatusRefused"
	// eventTerminating says that the cloud has accepted the termination.
	eventTerminating = "InstanceTerminating"
	// eventTerminated says that the instance and what was launched with it are gone.
	eventTerminated = "InstanceTerminated"
)

// announcement is an event that is published once the status is written.
type announcement struct {
	eventType, reason, action, message string
}

func (s *scope[M]) announceNormal(reason, action, format string, args ...any) {
	s.announce = append(s.announce, announcement{corev1.EventTypeNormal, reason, action, fmt.Sprintf(format, args...)})
}

func (s *scope[M]) announceWarning(reason, action, format string, args ...any) {
	s.announce = append(s.announce, announcement{corev1.EventTypeWarning, reason, action, fmt.Sprintf(format, args...)})
}

func (r *Reconciler[M]) publish(s *scope[M]) {
	for _, a := range s.announce {
		r.Recorder.Eventf(s.obj, nil, a.eventType, a.reason, a.action, "%s", events.Cut(a.message))
	}
	s.announce = nil
}

// announceRefusal records an event if the status cannot be written, since no condition can say so.
func (r *Reconciler[M]) announceRefusal(s *scope[M], err error) {
	if isRefusal(err) {
		s.announceWarning(eventRefused, "WriteStatus", "%s", err)
		r.publish(s)
	}
}

// announceChanges compares the status before and after the write.
func (s *scope[M]) announceChanges(before, after *driverv1.MachineStatus) {
	if !before.IsProvisioned() && after.IsProvisioned() {
		s.announceNormal(eventRunning, "Observe", "Instance %s runs in %s", after.InstanceID, after.FailureDomain)
	}
	if !before.HasFailed() && after.HasFailed() {
		s.announceWarning(eventFailed, "Observe", "%s: %s", *after.FailureReason, *after.FailureMessage)
	}
	s.announceOutage(before, after)
}
