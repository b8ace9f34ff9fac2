package inframachine

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/persist"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Reasons of events on the provider's machine.
const (
	// launchedEvent: the cloud has accepted the launch and the provider ID is recorded.
	launchedEvent = "InstanceLaunched"
	// adoptedEvent: the object has taken back an instance that was launched for an object of its name that no longer exists.
	adoptedEvent = "InstanceAdopted"
	// launchFailedEvent: the cloud has refused the launch, or its answer was lost.
	launchFailedEvent = "InstanceLaunchFailed"
	// runningEvent: the instance has been seen running for the first time.
	runningEvent = "InstanceRunning"
	// unmarkedEvent: the record of the installation cannot be read or written, so the instance is launched without one.
	unmarkedEvent = "LineageMissing"
	// scheduledEvent: the cloud has announced to do something with the instance.
	scheduledEvent = "InstanceEventScheduled"
	// replacedEvent: the Machine was deleted since the cloud takes the instance back.
	replacedEvent = "MachineDeleted"
	// keptEvent: the Machine is not deleted although the cloud takes the instance back, and why.
	keptEvent = "MachineKept"
	// notConfiguredEvent: the cloud refuses something that the spec wants of the instance that runs.
	notConfiguredEvent = "InstanceNotConfigured"
	// failedEvent: the machine has failed permanently.
	failedEvent = "MachineFailed"
	// secondEvent: another live instance carries the mark of the object.
	secondEvent = "SecondInstance"
	// unreachableEvent: the cloud's instances could not be listed for long. It is recorded once for all machines of a scope.
	unreachableEvent = "CloudUnreachable"
	// abandonedEvent: the object was removed while its instance was launched, and what became of the instance.
	abandonedEvent = "InstanceAbandoned"
	// identityRefusedEvent: nothing is called in the cloud, since the object may not use the identity that it names.
	identityRefusedEvent = "IdentityRefused"
	// heldEvent: the object is being deleted and its Machine is not, so that the instance is not terminated.
	heldEvent = "InstanceHeld"
	// terminatingEvent: the cloud has accepted the termination.
	terminatingEvent = "InstanceTerminating"
	// terminatedEvent: the instance and what was launched with it no longer exist.
	terminatedEvent = "InstanceTerminated"
)

// record records the events of this reconcile, and those of what has changed with the status if it has been written. writeErr is
// why it could not be.
func (r *Reconciler[M]) record(s *scope[M], written bool, writeErr error) {
	switch {
	case persist.Refusal(writeErr) != "" || persist.LostRace(writeErr):
		// What has happened has happened, and its own writes have succeeded. Another reconcile reports how things are.
	case writeErr != nil:
		return
	case written:
		before, after := s.Original.CommonStatus(), s.Object.CommonStatus()
		s.addChanges(before, after)
		r.measure(s, before, after)
	}
	s.events.Record(r.Recorder, s.Object)
}

// addChanges adds the events of what differs between the status before and after the write.
func (s *scope[M]) addChanges(before, after *driverv1.MachineStatus) {
	if !before.IsProvisioned() && after.IsProvisioned() {
		s.events.Normal(runningEvent, "Observe", "Instance %s runs%s", after.InstanceID, in(after.FailureDomain))
	}
	if !before.HasFailed() && after.HasFailed() {
		s.events.Warning(failedEvent, "Observe", "%s: %s", *after.FailureReason, *after.FailureMessage)
	}
	lacks := meta.FindStatusCondition(after.Conditions, driverv1.InstanceConfiguredCondition)
	if lacks != nil && lacks.Status == metav1.ConditionFalse && !meta.IsStatusConditionFalse(before.Conditions, lacks.Type) {
		s.events.Warning(notConfiguredEvent, "Configure", "%s", lacks.Message)
	}
	announced := meta.FindStatusCondition(after.Conditions, driverv1.InstanceEventScheduledCondition)
	if announced != nil && announced.Status == metav1.ConditionTrue {
		if was := meta.FindStatusCondition(before.Conditions, announced.Type); was == nil || was.Reason != announced.Reason {
			s.events.Warning(scheduledEvent, "Observe", "%s: %s", announced.Reason, announced.Message)
		}
	}
	if s.observed.held && !s.reportsHold() {
		s.events.Warning(heldEvent, "Terminate", "%s", s.observed.state.message)
	}
	s.addRefusal(before)
	s.addOutage(before, after)
}

// in reports where something is; nothing where there is no failure domain, as of a virtual machine that is in no zone.
func in(failureDomain string) string {
	if failureDomain == "" {
		return ""
	}
	return " in " + failureDomain
}

// addOutage adds one event for all machines of the scope, on the first whose status reports the outage.
func (s *scope[M]) addOutage(before, after *driverv1.MachineStatus) {
	o := s.view.Outage
	if o == nil || meta.IsStatusConditionFalse(before.Conditions, driverv1.CloudReachableCondition) {
		return
	}
	condition := meta.FindStatusCondition(after.Conditions, driverv1.CloudReachableCondition)
	if condition == nil || condition.Status != metav1.ConditionFalse || !o.FirstReport() {
		return
	}
	s.events.Warning(unreachableEvent, "Observe", "All machines of %s: %s", s.handle.Scope, condition.Message)
}
