package machinedeployment

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// anyView is a view of any numbers, also such as no world comes to by itself.
func anyView(random *rand.Rand) view {
	v := view{
		replicas: random.IntN(8), maxSurge: random.IntN(4), maxUnavailable: random.IntN(4),
		strategy: clusterv1.RollingUpdateMachineDeploymentStrategyType, paused: random.IntN(4) == 0, recreate: random.IntN(6) == 0,
	}
	if random.IntN(4) == 0 {
		v.strategy = clusterv1.OnDeleteMachineDeploymentStrategyType
	}
	current := random.IntN(5)
	for i := range random.IntN(5) {
		set := setView{name: fmt.Sprintf("s%d", i), current: i == current, desired: random.IntN(8), settled: random.IntN(2) == 0}
		if random.IntN(3) == 0 {
			set.reserve = random.IntN(8)
		}
		set.deleting, set.chosen = random.IntN(3), random.IntN(3)
		for range set.deleting {
			set.order = append(set.order, false)
		}
		for range set.chosen {
			set.order = append(set.order, random.IntN(2) == 0)
		}
		useless := random.IntN(4)
		for n := range useless + random.IntN(4) {
			set.order = append(set.order, n >= useless)
		}
		// Priorities go before availability.
		if tail := set.order[set.deleting+set.chosen:]; random.IntN(3) == 0 {
			random.Shuffle(len(tail), func(i, j int) { tail[i], tail[j] = tail[j], tail[i] })
		}
		v.sets = append(v.sets, set)
	}
	return v
}

// totals are what a view may come to: Machines that may exist, and outdated Machines and available current ones, of
// which enough have to be left for the case that all outdated ones recover.
func totals(v view) (existing, recoverable int) {
	for i := range v.sets {
		set := &v.sets[i]
		existing += set.existing()
		if set.current {
			recoverable += set.available()
		} else {
			recoverable += set.desired
		}
	}
	return existing, recoverable
}

// TestPlanOfAnyView asks for plans of views that are not even possible, and holds each to what can be said of it alone:
// it is the same each time and changes nothing that it was given, orders only changes, none below zero, and none that
// exceeds what may exist.
func TestPlanOfAnyView(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		t.Helper()
		random := rand.New(rand.NewPCG(seed, 2))
		for range 20 {
			v := anyView(rand.New(rand.NewPCG(random.Uint64(), 0)))
			before := fmt.Sprintf("%+v", v)
			p := makePlan(v)
			if after := fmt.Sprintf("%+v", v); after != before {
				t.Fatalf("seed %d: the view was changed:\n%s\n%s", seed, before, after)
			}
			if !reflect.DeepEqual(makePlan(v), p) {
				t.Fatalf("seed %d: two plans of one view differ:\n%s", seed, before)
			}
			checkAlone(t, v, p, before)
		}
	})
}

func checkAlone(t *testing.T, v view, p plan, text string) {
	t.Helper()
	existing, recoverable := totals(v)
	after := v
	after.sets = append([]setView(nil), v.sets...)
	for _, i := range p.scale {
		if i.to < 0 || i.from == i.to || i.reason == "" {
			t.Fatalf("%+v is no order:\n%s", i, text)
		}
		for n := range after.sets {
			if set := &after.sets[n]; set.name == i.set {
				checkRemoved(t, set, i, text)
				set.order = removed(set, i.remove)
				set.reserve, set.desired = max(set.reserve, i.from), i.to
			}
		}
	}
	if p.create {
		after.sets = append(after.sets, setView{current: true, desired: p.createReplicas})
	}
	existingAfter, recoverableAfter := totals(after)
	if existingAfter > max(existing, v.replicas+v.maxSurge) {
		t.Fatalf("%d Machines may come to exist, before %d: %+v\n%s", existingAfter, existing, p, text)
	}
	rolling := !v.paused && !v.recreate && v.strategy == clusterv1.RollingUpdateMachineDeploymentStrategyType
	if serve := left(after); rolling && serve+lowered(v) < min(v.replicas-v.maxUnavailable, left(v)) {
		t.Fatalf("%d Machines serve, before %d: %+v\n%s", serve, left(v), p, text)
	}
	if minimum := v.replicas - v.maxUnavailable; rolling && recoverableAfter < min(minimum, recoverable) {
		given := blindlyGivenOf(v, p) + takenBack(v, p)
		marked := 0
		for i := range v.sets {
			marked += v.sets[i].chosen
		}
		given += min(marked, lowered(v))
		if recoverableAfter+given < min(minimum, recoverable) {
			t.Fatalf("at most %d Machines would be available if all recovered, before %d: %+v\n%s", recoverableAfter, recoverable, p, text)
		}
	}
}

// checkRemoved holds Machines that the deployment deletes itself to what they must be: outdated, not serving, none that is
// going, and of a set that has acted.
func checkRemoved(t *testing.T, set *setView, i intent, text string) {
	t.Helper()
	for n, at := range i.remove {
		if set.current || set.order[at] || at < set.deleting || (n > 0 && at <= i.remove[n-1]) {
			t.Fatalf("Machine %d of %s must not be deleted: %+v\n%s", at, set.name, i, text)
		}
	}
	if len(i.remove) > 0 && (i.from-i.to != len(i.remove) || set.reserve > i.from || len(set.order)-set.deleting > i.from) {
		t.Fatalf("Machines are deleted besides those that %s is to give up: %+v\n%s", set.name, i, text)
	}
}

// removed is the order of a set when the Machines at some positions are being deleted.
func removed(set *setView, positions []int) []bool {
	order := make([]bool, len(positions), len(set.order))
	for at, available := range set.order {
		if !slices.Contains(positions, at) {
			order = append(order, available)
		}
	}
	return order
}

// left is how many Machines are available when all sets have what they desire.
func left(v view) int {
	sum := 0
	for i := range v.sets {
		sum += v.sets[i].available()
	}
	return sum
}

// lowered is how many Machines go since the number of replicas is lower than it was: those beyond all that a rollout may
// have, and those of the current set beyond the replicas.
func lowered(v view) int {
	most := -v.replicas - v.maxSurge
	for i := range v.sets {
		most += v.sets[i].desired
	}
	for i := range v.sets {
		if v.sets[i].current {
			most = max(most, v.sets[i].desired-v.replicas)
		}
	}
	return max(most, 0)
}

// blindlyGivenOf is what goes of the current set because it has more than the replicas: which of its Machines go is the set's
// choice.
func blindlyGivenOf(v view, p plan) int {
	given := 0
	for _, i := range p.scale {
		for n := range v.sets {
			if set := &v.sets[n]; set.name == i.set && set.current {
				given += max(set.availableAt(i.from)-set.availableAt(i.to), 0)
			}
		}
	}
	return given
}

// takenBack is how many of the outdated Machines that were not created yet are no longer to be created.
func takenBack(v view, p plan) int {
	taken := 0
	for _, i := range p.scale {
		for n := range v.sets {
			if set := &v.sets[n]; set.name == i.set && !set.current {
				taken += max(i.from-max(i.to, len(set.order)), 0)
			}
		}
	}
	return taken
}
