package inframachine

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/paused"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// machineConditions are the conditions that follow from what was observed; those that are not among them stay as they are.
// provisioned is true if the instance has been seen running.
func machineConditions(o observed, provisioned bool) []metav1.Condition {
	list := []metav1.Condition{paused.Condition(o.pausedBy)}
	why := cmp.Or(o.failure, o.state)
	if len(o.pausedBy) > 0 || why == nil {
		return list
	}
	switch {
	case o.runs():
		list = append(list, conditions.True(driverv1.InstanceProvisionedCondition, why.reason, why.message))
	case !o.deleting && !provisioned:
		list = append(list, conditions.False(driverv1.InstanceProvisionedCondition, why.reason, why.message))
	}
	switch {
	case o.runs() && o.notice.isInterruption():
		message := strings.TrimSuffix(o.announced()+". "+why.message, ". ")
		return append(list, conditions.False(driverv1.ReadyCondition, driverv1.InterruptionImminentReason, message))
	case o.runs() && o.unfinished != nil:
		message := strings.TrimSuffix("The instance runs. "+o.unfinished.message+". "+why.message, ". ")
		return append(list, conditions.False(driverv1.ReadyCondition, driverv1.InstanceNotConfiguredReason, message))
	case o.runs():
		return append(list, conditions.True(driverv1.ReadyCondition, why.reason, why.message))
	}
	return append(list, conditions.False(driverv1.ReadyCondition, why.reason, why.message))
}

// healthyCondition is the condition InstanceHealthy as the latest observation of the instance has it; nil leaves it as it is. True alone is
// not worth a write.
func healthyCondition(status *driverv1.MachineStatus, o observed) *metav1.Condition {
	if len(o.pausedBy) > 0 || o.instance == nil {
		return nil
	}
	if o.instance.Impaired != "" {
		impaired := conditions.False(driverv1.InstanceHealthyCondition, driverv1.InstanceImpairedReason,
			"The instance fails checks of the cloud: "+o.instance.Impaired)
		return &impaired
	}
	if meta.FindStatusCondition(status.Conditions, driverv1.InstanceHealthyCondition) == nil {
		return nil
	}
	healthy := conditions.True(driverv1.InstanceHealthyCondition, driverv1.InstanceHealthyReason, "")
	return &healthy
}

// configuredCondition is the condition InstanceConfigured as the latest observation has it; nil leaves it as it is. True alone is not worth
// a write, nor is what the cloud has not been asked for yet.
func configuredCondition(status *driverv1.MachineStatus, o observed) *metav1.Condition {
	known := meta.FindStatusCondition(status.Conditions, driverv1.InstanceConfiguredCondition) != nil
	switch {
	case len(o.pausedBy) > 0 || o.instance == nil || o.deleting:
		return nil
	case o.unfinished != nil && (known || o.unfinished.reason != driverv1.ConfiguringInstanceReason):
		lacks := conditions.False(driverv1.InstanceConfiguredCondition, o.unfinished.reason, o.unfinished.message)
		return &lacks
	case o.unfinished != nil || !known:
		return nil
	}
	configured := conditions.True(driverv1.InstanceConfiguredCondition, driverv1.InstanceConfiguredReason, "")
	return &configured
}

// scheduledCondition is the condition InstanceEventScheduled as the latest observation has it; nil leaves it as it is.
func scheduledCondition(status *driverv1.MachineStatus, o observed) *metav1.Condition {
	if len(o.pausedBy) > 0 || o.instance == nil || o.deleting {
		return nil
	}
	set := conditions.False(driverv1.InstanceEventScheduledCondition, driverv1.NoEventScheduledReason, "")
	switch scheduled := o.instance.Scheduled; {
	case o.notice != nil:
		message := strings.TrimSuffix(o.announced()+". "+scheduled, ". ")
		set = conditions.True(driverv1.InstanceEventScheduledCondition, o.notice.reason(), message)
	case scheduled != "":
		set = conditions.True(driverv1.InstanceEventScheduledCondition, driverv1.MaintenanceScheduledReason, scheduled)
	case meta.FindStatusCondition(status.Conditions, driverv1.InstanceEventScheduledCondition) == nil:
		return nil
	}
	return &set
}

// runs is true if the instance of a machine runs that is not being deleted.
func (o observed) runs() bool {
	return o.failure == nil && !o.deleting && o.state != nil && o.state.reason == driverv1.InstanceRunningReason
}

// announced describes the notice, and what has become of the Machine.
func (o observed) announced() string {
	return strings.TrimSuffix(o.notice.String()+". "+o.replaced, ". ")
}
