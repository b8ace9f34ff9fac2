package machinedeployment

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// seeds is how many worlds are simulated; MILLWRIGHT_SEEDS sets another number, MILLWRIGHT_SEED replays one.
const seeds = 4000

// rounds is how long chaos lasts.
const rounds = 40

// numbers are what the promises are about.
type numbers struct {
	// machines exist; bound may come to exist without another word of the planner.
	machines, bound int
	// available are those that serve; left are those of them that will when every set has acted.
	available, left int
}

func (s *simulation) count() numbers {
	var n numbers
	for _, set := range s.sets {
		n.machines += len(set.machines)
		n.bound += max(len(set.machines), set.desired, set.reserve)
		order := set.order()
		for i, machine := range order {
			if machine.deleting || !machine.available {
				continue
			}
			n.available++
			if i >= len(order)-set.desired {
				n.left++
			}
		}
	}
	return n
}

// check holds a plan, just applied, to the promises.
func (s *simulation) check(t *testing.T, p plan, before, after numbers) {
	t.Helper()
	// A bound that was exceeded before, since a user has lowered a number or edited a set, may only fall.
	if limit := max(s.replicas+s.maxSurge, before.bound); after.bound > limit {
		t.Fatalf("%d Machines may come to exist, %d are allowed\n%s", after.bound, limit, s.trace.String())
	}
	minimum := s.replicas - s.maxUnavailable
	if s.recreate && !s.paused {
		minimum = 0
	}
	if after.left+s.chosenGiven(p)+s.blindlyGiven(p) < min(minimum, before.left) {
		t.Fatalf("%d Machines left available, %d required, %d before\n%s", after.left, minimum, before.left, s.trace.String())
	}
	for _, i := range p.scale {
		set, direction := s.set(i.set), cmp.Compare(i.to, i.from)
		if set.direction == -direction && set.moment == s.moments {
			t.Fatalf("%s is given the opposite of what it was given, and nothing has happened between\n%s", i.set, s.trace.String())
		}
		if i.reason == "" {
			t.Fatalf("no reason for %s\n%s", i.set, s.trace.String())
		}
		set.direction, set.moment = direction, s.moments
	}
	if s.strategy == clusterv1.OnDeleteMachineDeploymentStrategyType && !s.paused {
		s.checkOnDelete(t, p)
	}
}

// chosenGiven is how many Machines that serve a plan gives up since a user has chosen them and lowered the number of
// replicas: as many as there are beyond all that a rollout may have, or in the current set beyond the replicas. A mark
// alone gives up none that are needed.
func (s *simulation) chosenGiven(p plan) int {
	given, surplus, lowered := 0, -s.replicas-s.maxSurge, 0
	for _, set := range s.sets {
		surplus += set.desired
	}
	for _, i := range p.scale {
		surplus += i.from - i.to
		set := s.set(i.set)
		if set == s.current() || s.paused {
			lowered = max(lowered, i.from-s.replicas)
		}
		order := set.order()
		for _, machine := range order[max(len(order)-i.from, 0):max(len(order)-i.to, len(order)-i.from, 0)] {
			if machine.chosen && machine.available && !machine.deleting {
				given++
			}
		}
	}
	return min(given, max(surplus, lowered, 0))
}

// blindlyGiven is what goes because there are more than the replicas, in the current set or while nothing rolls, when sets do
// not prefer what is not available: which of their Machines go is not the planner's doing.
func (s *simulation) blindlyGiven(p plan) int {
	given := 0
	rolling := !s.paused && s.strategy == clusterv1.RollingUpdateMachineDeploymentStrategyType
	for _, i := range p.scale {
		set := s.set(i.set)
		if !s.blind || (set != s.current() && rolling) || i.to > i.from {
			continue
		}
		order := set.order()
		for _, machine := range order[max(len(order)-i.from, 0):max(len(order)-i.to, 0)] {
			if machine.available && !machine.deleting {
				given++
			}
		}
	}
	return given
}

// checkOnDelete makes sure that no outdated Machine goes unless a user has deleted it or there are too many.
func (s *simulation) checkOnDelete(t *testing.T, p plan) {
	t.Helper()
	total := 0
	for _, set := range s.sets {
		total += set.desired
	}
	for _, i := range p.scale {
		if set := s.set(i.set); set != s.current() && i.to > i.from {
			t.Fatalf("%s is outdated and grows\n%s", i.set, s.trace.String())
		}
	}
	if !p.create && total < s.replicas && s.settledWorld() {
		t.Fatalf("%d replicas are given to the sets, %d are wanted\n%s", total, s.replicas, s.trace.String())
	}
}

// settledWorld reports whether all sets have acted and no Machine is going.
func (s *simulation) settledWorld() bool {
	return !slices.ContainsFunc(s.sets, func(set *simSet) bool {
		return set.acted != set.desired || slices.ContainsFunc(set.machines, func(m *simMachine) bool { return m.deleting })
	})
}

// replan plans and applies until a plan changes nothing: a few times, since nothing happens between.
func (s *simulation) replan(t *testing.T) (quiet bool, before, after numbers) {
	t.Helper()
	before = s.count()
	last := before
	for plans := range 5 {
		p := makePlan(s.look())
		if !p.create && len(p.scale) == 0 {
			return plans == 0, before, last
		}
		s.apply(p)
		after = s.count()
		s.check(t, p, last, after)
		last = after
	}
	t.Fatalf("plans follow plans, though nothing happens\n%s", s.trace.String())
	return false, before, after
}

// step plans and lets the world continue, checking the promises all the while.
func (s *simulation) step(t *testing.T, round int) (quiet bool) {
	t.Helper()
	s.note("round %d", round)
	quiet, before, after := s.replan(t)
	s.Shuffle(len(s.sets), func(i, j int) { s.sets[i], s.sets[j] = s.sets[j], s.sets[i] })
	lags := false
	for _, set := range s.sets {
		if s.chaos && s.IntN(3) == 0 {
			lags = true
			continue
		}
		s.act(set)
	}
	slices.SortFunc(s.sets, func(a, b *simSet) int { return cmp.Compare(a.name, b.name) })
	if s.exceeded != "" {
		t.Fatalf("%s\n%s", s.exceeded, s.trace.String())
	}
	if now := s.count(); !lags && (now.available != after.left || now.machines > max(after.bound, before.bound)) {
		t.Fatalf("%d Machines are available, %d were foreseen; %d exist of %d\n%s",
			now.available, after.left, now.machines, after.bound, s.trace.String())
	}
	s.checkNotFrozen(t)
	s.remediate()
	s.deleteOutdated()
	for _, set := range s.sets {
		for _, machine := range slices.Clone(set.machines) {
			if s.IntN(3) > 0 {
				s.happen(machine, set)
			}
		}
	}
	return quiet
}

// converged reports whether all Machines are current, available and of the right number.
func (s *simulation) converged() bool {
	current := s.current()
	for _, set := range s.sets {
		switch {
		case set != current && len(set.machines)+set.desired > 0:
			return false
		case set == current && (len(set.machines) != s.replicas || set.desired != s.replicas):
			return false
		}
	}
	return s.count().available == s.replicas
}

// eachSeed runs a test for the seeds that were asked for.
func eachSeed(t *testing.T, simulate func(*testing.T, uint64)) {
	t.Helper()
	first, last := uint64(0), uint64(seeds)
	if value := os.Getenv("MILLWRIGHT_SEEDS"); value != "" {
		last, _ = strconv.ParseUint(value, 10, 64)
	}
	if value := os.Getenv("MILLWRIGHT_SEED"); value != "" {
		first, _ = strconv.ParseUint(value, 10, 64)
		last = first + 1
	}
	for seed := first; seed < last; seed++ {
		simulate(t, seed)
	}
}

// TestSimulation lets worlds go through chaos and settle: every promise is checked at every step, and in the end
// each world has what its deployment specifies.
func TestSimulation(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		t.Helper()
		s := newSimulation(seed)
		s.note("seed %d: replay with MILLWRIGHT_SEED=%d", seed, seed)
		s.chaos = true
		for round := range rounds {
			s.step(t, round)
			s.people()
		}
		s.heal()
		s.settle(t)
	})
}

// settle runs until all is as it should be. Each round of a rollout replaces at least one Machine, and each
// Machine takes a few rounds to come and go.
func (s *simulation) settle(t *testing.T) {
	t.Helper()
	for round := rounds; round < rounds+40*(s.replicas+3); round++ {
		s.step(t, round)
		if s.converged() {
			if !s.step(t, round+1) {
				t.Fatalf("a plan for a deployment that is as it should be\n%s", s.trace.String())
			}
			return
		}
	}
	t.Fatalf("it does not converge\n%s", s.trace.String())
}

// TestCalmRolloutReplacesEachMachineOnce runs rollouts in which nothing fails: no Machine more is created than are
// wanted.
func TestCalmRolloutReplacesEachMachineOnce(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		t.Helper()
		s := newSimulation(seed)
		s.settle(t)
		s.created, s.template = 0, 1
		s.happened("user: template 1")
		s.settle(t)
		if s.created != s.replicas {
			t.Fatalf("%d Machines were created for %d replicas\n%s", s.created, s.replicas, s.trace.String())
		}
	})
}
