package inframachine

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inventory"
)

// concludeReachable sets CloudReachable by what the inventory says. Ready stays as it is: an instance of which nothing is heard
// most probably runs, and machines that all became unready when the cloud's API fails would all be replaced.
//
// What has been said of an outage stays as long as its reason is the same, also across a restart, after which the inventory does
// not know when the latest list was. before is the status as it was read: True alone is not worth a write.
func concludeReachable(before, status *driverv1.MachineStatus, f facts, view inventory.View, generation int64, now metav1.Time) {
	const kind = driverv1.CloudReachableCondition
	condition := metav1.Condition{Type: kind, ObservedGeneration: generation, LastTransitionTime: now}
	said := meta.FindStatusCondition(status.Conditions, kind)
	switch {
	case f.paused:
		return
	case status.HasFailed():
		meta.RemoveStatusCondition(&status.Conditions, kind) // Its instance is not followed any more.
		return
	case view.Outage != nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, reasonOfOutage(view.Outage.Err)
		if said != nil && said.Status == condition.Status && said.Reason == condition.Reason {
			return
		}
		condition.Message = explainOutage(view.Outage, said)
	case view.Err != nil || view.ListedAt.IsZero():
		return
	case said == nil && equality.Semantic.DeepEqual(before, status):
		return
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, driverv1.InstancesListedReason
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}

// reasonOfOutage returns the reason for a class of error that a list may have.
func reasonOfOutage(err error) string {
	switch driver.ClassOf(err) {
	case driver.ClassAuth:
		return driverv1.UnauthorizedReason
	case driver.ClassThrottle:
		return driverv1.ThrottledReason
	default:
		return driverv1.CloudErrorReason
	}
}

// explainOutage says since when the cloud has not been heard of, in whose words, and what to do. said is the condition as it is.
func explainOutage(o *inventory.Outage, said *metav1.Condition) string {
	since := "since this provider began to list them at " + instant(o.Since)
	switch {
	case !o.LastListed.IsZero():
		since = "since " + instant(o.LastListed)
	case said != nil && said.Status == metav1.ConditionFalse:
		since = "since before " + instant(said.LastTransitionTime.Time)
	}
	message := fmt.Sprintf("Instances have not been listed successfully %s; the status of this instance may be out of date, and Ready stays as it was. The cloud says: %s",
		since, strings.TrimRight(events.Cut(o.Err.Error()), "."))
	if driver.IsAuth(o.Err) {
		message += ". Check the provider's credentials and permissions"
	}
	return message
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// announceOutage records one event for all machines of the scope, on the first whose status says so.
func (s *scope[M]) announceOutage(before, after *driverv1.MachineStatus) {
	o := s.view.Outage
	if o == nil || meta.IsStatusConditionFalse(before.Conditions, driverv1.CloudReachableCondition) {
		return
	}
	condition := meta.FindStatusCondition(after.Conditions, driverv1.CloudReachableCondition)
	if condition == nil || condition.Status != metav1.ConditionFalse || !o.Announce() {
		return
	}
	s.announceWarning(eventUnreachable, "Observe", "All machines of %s: %s", s.handle.Scope, condition.Message)
}
