package machineset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
	"millwright.dev/core/outcome"
)

// slowDeletion is after what time the deletion of a Machine is called slow; that of Cluster API.
const slowDeletion = 15 * time.Minute

// slowText names the Machines whose deletion takes long, with what each waits for; "" when there are none.
func slowText(all []*clusterv1.Machine, now time.Time) string {
	groups := map[string][]*clusterv1.Machine{}
	for _, machine := range all {
		if machine.DeletionTimestamp.IsZero() || now.Sub(machine.DeletionTimestamp.Time) < slowDeletion {
			continue
		}
		reason := "not reported"
		if at := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineDeletingCondition); at != nil {
			reason = at.Reason
		}
		groups[reason] = append(groups[reason], machine)
	}
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(groups)) {
		lines = append(lines, fmt.Sprintf("\n* in deletion for more than %d minutes, %s: %s", slowDeletion/time.Minute, reason, machines.ListNames(groups[reason])))
	}
	return strings.Join(lines, "")
}

// nextSlow is when the next Machine will be called slow; zero for none.
func nextSlow(machines []*clusterv1.Machine, now time.Time) time.Time {
	var next time.Time
	for _, machine := range machines {
		if machine.DeletionTimestamp.IsZero() {
			continue
		}
		if at := machine.DeletionTimestamp.Add(slowDeletion); at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// watchSlow has the set looked at when a deletion begins to be slow.
func (r *Reconciler) watchSlow(_ context.Context, s *scope) outcome.Outcome {
	if next := nextSlow(s.machines, s.now); !next.IsZero() {
		return outcome.ContinueAfter(next.Sub(s.now))
	}
	return outcome.Continue()
}
