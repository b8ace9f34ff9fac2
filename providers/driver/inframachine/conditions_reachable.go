package inframachine

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/events"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inventory"
)

// reachableCondition is the condition CloudReachable as it follows from the inventory; nil leaves it as it is. Ready does not
// depend on it: an instance that the cloud does not report about most probably runs, and machines that all became unready when the
// cloud's API fails would all be replaced.
//
// The report of an outage stays as long as its reason is the same, also across a restart, after which the inventory does not know
// when the latest list was. before is the status as it was read: True alone is not worth a write.
func reachableCondition(before, status *driverv1.MachineStatus, o observed, view inventory.View) *metav1.Condition {
	reported := meta.FindStatusCondition(status.Conditions, driverv1.CloudReachableCondition)
	switch {
	case len(o.pausedBy) > 0 || status.HasFailed():
		return nil
	case o.refused != nil:
		return refusedCondition(o, status)
	case view.Outage != nil:
		reason := reasonOfOutage(view.Outage.Err)
		if reported != nil && reported.Status == metav1.ConditionFalse && reported.Reason == reason {
			return nil
		}
		return ptr.To(conditions.False(driverv1.CloudReachableCondition, reason, explainOutage(view.Outage, reported)))
	case view.Err != nil || view.ListedAt.IsZero():
		return nil
	case (reported == nil || reported.Status == metav1.ConditionTrue) && equality.Semantic.DeepEqual(before, status):
		return nil
	}
	return ptr.To(conditions.True(driverv1.CloudReachableCondition, driverv1.InstancesListedReason, ""))
}

// refusedCondition reports that the identity may not be used on a machine that has run, whose Ready stays as it was for the same reason as
// in an outage. On others Ready reports it.
func refusedCondition(o observed, status *driverv1.MachineStatus) *metav1.Condition {
	if o.deleting || !status.IsProvisioned() {
		return nil
	}
	return ptr.To(conditions.False(driverv1.CloudReachableCondition, o.refused.reason,
		withoutStopText(o.refused.message)+". What is reported about the instance may be out of date; Ready stays as it was"))
}

// reports returns whether a condition is not True for that reason.
func reports(status *driverv1.MachineStatus, conditionType, reason string) bool {
	condition := meta.FindStatusCondition(status.Conditions, conditionType)
	return condition != nil && condition.Status != metav1.ConditionTrue && condition.Reason == reason
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

// explainOutage returns since when instances could not be listed, the cloud's own words, and what to do. reported is the condition
// as it is.
func explainOutage(o *inventory.Outage, reported *metav1.Condition) string {
	since := "since this provider began to list them at " + instant(o.Since)
	switch {
	case !o.LastListed.IsZero():
		since = "since " + instant(o.LastListed)
	case reported != nil && reported.Status == metav1.ConditionFalse:
		since = "since before " + instant(reported.LastTransitionTime.Time)
	}
	message := fmt.Sprintf(
		"Instances have not been listed successfully %s; the status of this instance may be out of date, and Ready stays as it was. The cloud answers: %s",
		since,
		strings.TrimRight(events.Cut(o.Err.Error()), "."),
	)
	if driver.IsAuth(o.Err) {
		message += ". Check the permissions of identityRef, or of the provider's own credentials where that is not set"
	}
	return message
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
