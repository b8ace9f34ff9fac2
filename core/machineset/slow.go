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

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// slowText names the Machines whose deletion takes long, with what each waits for; "" when there are none.
func slowText(all []*clusterv1.Machine, now time.Time) string {
	groups := map[string][]*clusterv1.Machine{}
	for _, machine := range all {
		if !machines.IsSlow(machine, now) {
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
		lines = append(lines, fmt.Sprintf("\n* in deletion for more than %d minutes, %s: %s", machines.SlowDeletion/time.Minute, reason, machines.ListNames(groups[reason])))
	}
	return strings.Join(lines, "")
}

// requeueAfterSlowDeletion has the set looked at when a deletion begins to be slow.
func (r *Reconciler) requeueAfterSlowDeletion(_ context.Context, s *scope) outcome.Outcome {
	if next := machines.NextSlow(s.machines, s.now); !next.IsZero() {
		return outcome.ContinueAfter(next.Sub(s.now))
	}
	return outcome.Continue()
}
