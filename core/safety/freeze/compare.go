package freeze

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"
)

// setBack returns what shows that a later read of the lease is from an earlier time than one before it; "" if nothing does. etcd counts up
// only, so an earlier version means that the management cluster was replaced. A later one does not mean the contrary: a backup may be
// restored with a higher revision, and a restored cluster counts on. What was renewed when is compared only if the clock is trusted.
func setBack(before, after *coordinationv1.Lease, trusted bool) string {
	order, err := resourceversion.CompareResourceVersion(after.ResourceVersion, before.ResourceVersion)
	switch {
	case err == nil && order < 0:
		return "its resourceVersion went back from " + before.ResourceVersion + " to " + after.ResourceVersion
	case err == nil && order == 0 && describe(before) != describe(after):
		return "resourceVersion " + before.ResourceVersion + " is another one than before: the lease of the core has " + describe(after) +
			" instead of " + describe(before)
	}
	if before.UID != after.UID {
		return setBackByAnother(before, after, trusted)
	}
	from, to := transitions(before), transitions(after)
	switch {
	case to < from:
		return fmt.Sprintf("the leaseTransitions of the core went back from %d to %d", from, to)
	case to == from && holder(before) != holder(after) && holder(before) != "" && holder(after) != "":
		// Each change of the holder counts.
		return fmt.Sprintf("the lease of the core is held by %s instead of %s, and no transition was counted", holder(after), holder(before))
	case trusted && to == from && wentBack(before, after):
		return renewedEarlier(before, after)
	}
	return ""
}

// setBackByAnother is setBack for a lease that is another object now. A user may have deleted it, and the core has created it again.
func setBackByAnother(before, after *coordinationv1.Lease, trusted bool) string {
	switch {
	case after.CreationTimestamp.Before(&before.CreationTimestamp):
		return fmt.Sprintf("the lease of the core is an older one, with the UID %s instead of %s", after.UID, before.UID)
	case trusted && wentBack(before, after):
		return renewedEarlier(before, after)
	}
	return ""
}

// trustsClock reports whether this core's clock was not set back since the lease was last compared: its own renewals go back with it.
func (f *Freezer) trustsClock() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.jumps.by >= 0 || f.clock.Now().After(f.jumps.at.Add(max(f.options.Grace, 2*f.options.Period)))
}

// wentBack reports whether a lease was renewed earlier than before, by more than clocks differ and NTP corrects.
func wentBack(before, after *coordinationv1.Lease) bool {
	return before.Spec.RenewTime != nil && after.Spec.RenewTime != nil &&
		before.Spec.RenewTime.Sub(after.Spec.RenewTime.Time) > restoreGap
}

func renewedEarlier(before, after *coordinationv1.Lease) string {
	return fmt.Sprintf("the renewTime of the lease of the core went back from %s to %s",
		stamp(before.Spec.RenewTime.Time), stamp(after.Spec.RenewTime.Time))
}

// describe returns what two reads of the same version of a lease have in common.
func describe(lease *coordinationv1.Lease) string {
	renewed := "never"
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("UID %s, holder %q, transitions %d, renewed %s", lease.UID, holder(lease), transitions(lease), renewed)
}

func holder(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }

func transitions(lease *coordinationv1.Lease) int32 { return ptr.Deref(lease.Spec.LeaseTransitions, 0) }
