package machines

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SlowDeletion is after what time the deletion of a Machine is called slow, and named by the conditions of its owners; that
// of Cluster API.
const SlowDeletion = 15 * time.Minute

// IsSlow says whether a Machine has been in deletion for as long as SlowDeletion.
func IsSlow(machine *clusterv1.Machine, now time.Time) bool {
	return !machine.DeletionTimestamp.IsZero() && now.Sub(machine.DeletionTimestamp.Time) >= SlowDeletion
}

// NextSlow is when the next Machine will be slow; zero for none.
func NextSlow(all []*clusterv1.Machine, now time.Time) time.Time {
	var next time.Time
	for _, machine := range all {
		if machine.DeletionTimestamp.IsZero() {
			continue
		}
		if at := machine.DeletionTimestamp.Add(SlowDeletion); at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}
