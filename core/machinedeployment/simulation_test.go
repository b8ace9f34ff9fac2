package machinedeployment

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// seeds is how many worlds are simulated; MILLWRIGHT_SEEDS sets another number, MILLWRIGHT_SEED replays one.
const seeds = 4000

// simMachine is a Machine in a simulated world.
type simMachine struct {
	name      int
	available bool
	deleting  bool
	// doomed Machines never become available.
	doomed bool
}

// simSet is a MachineSet in a simulated world.
type simSet struct {
	name     string
	template int
	desired  int
	// acted is the number that the set has looked at last.
	acted    int
	machines []*simMachine
}

// simulation is a world of one deployment: its sets act on their numbers, and its Machines come up, fail and
// end, at random moments between two plans.
type simulation struct {
	*rand.Rand
	view
	template int
	sets     []*simSet
	names    int
	trace    strings.Builder
	// chaos lets Machines fail, users edit and sets lag.
	chaos bool
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{Rand: rand.New(rand.NewPCG(seed, 1))}
	s.replicas = s.IntN(12)
	s.maxSurge = s.IntN(4)
	s.maxUnavailable = s.IntN(4)
	if s.maxSurge+s.maxUnavailable == 0 {
		s.maxUnavailable = 1
	}
	s.strategy = clusterv1.RollingUpdateMachineDeploymentStrategyType
	s.note("replicas %d, surge %d, unavailable %d", s.replicas, s.maxSurge, s.maxUnavailable)
	return s
}

func (s *simulation) note(format string, args ...any) {
	fmt.Fprintf(&s.trace, format+"\n", args...)
}

// order returns the Machines as the set would delete them: deleting ones, then by availability, then by name.
func (set *simSet) order() []*simMachine {
	rank := func(m *simMachine) int {
		switch {
		case m.deleting:
			return 0
		case !m.available:
			return 1
		default:
			return 2
		}
	}
	return slices.SortedFunc(slices.Values(set.machines), func(a, b *simMachine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.name*7919%101, b.name*7919%101))
	})
}

// look is what the reconciler would hand to the planner.
func (s *simulation) look() view {
	v := s.view
	v.sets = nil
	for _, set := range s.sets {
		seen := setView{name: set.name, current: set.template == s.template, desired: set.desired, settled: set.acted == set.desired}
		if set.acted != set.desired {
			seen.reserve = set.acted
		}
		for _, machine := range set.order() {
			seen.order = append(seen.order, machine.available && !machine.deleting)
			if machine.deleting {
				seen.deleting++
			}
		}
		v.sets = append(v.sets, seen)
	}
	return v
}

// apply does what the plan says.
func (s *simulation) apply(p plan) {
	for _, i := range p.scale {
		for _, set := range s.sets {
			if set.name == i.set {
				s.note("  scale %s %d→%d: %s", i.set, i.from, i.to, i.reason)
				set.desired = i.to
			}
		}
	}
	if p.create {
		set := &simSet{name: fmt.Sprintf("s%03d", len(s.sets)), template: s.template, desired: p.createReplicas}
		s.note("  create %s with %d: %s", set.name, set.desired, p.createReason)
		s.sets = append(s.sets, set)
	}
}

// act lets one set do what its number says.
func (s *simulation) act(set *simSet) {
	set.acted = set.desired
	for len(set.machines) < set.desired {
		s.names++
		set.machines = append(set.machines, &simMachine{name: s.names, doomed: s.chaos && s.IntN(8) == 0})
	}
	order := set.order()
	for i := range len(order) - set.desired {
		order[i].deleting = true
	}
}

// happen lets one Machine move on; it says whether the planner's doing may have cost availability.
func (s *simulation) happen(machine *simMachine, set *simSet) {
	switch {
	case machine.deleting:
		set.machines = slices.DeleteFunc(set.machines, func(m *simMachine) bool { return m == machine })
	case !machine.available && !machine.doomed:
		machine.available = true
	case s.chaos && s.IntN(10) == 0:
		s.note("  Machine %d of %s fails", machine.name, set.name)
		machine.available = false
		machine.doomed = s.IntN(2) == 0
	}
}

// users lets a user change something now and then.
func (s *simulation) users() {
	switch s.IntN(12) {
	case 0:
		s.template = s.IntN(3)
		s.note("  user: template %d", s.template)
	case 1:
		s.replicas = s.IntN(12)
		s.note("  user: replicas %d", s.replicas)
	case 2:
		for _, set := range s.sets {
			for _, machine := range set.machines {
				if s.IntN(6) == 0 {
					machine.deleting = true
					s.note("  user: delete Machine %d of %s", machine.name, set.name)
				}
			}
		}
	}
}

func (s *simulation) total() (machines, available, bound int) {
	for _, set := range s.sets {
		machines += len(set.machines)
		bound += max(len(set.machines), set.desired)
		for _, machine := range set.machines {
			if machine.available && !machine.deleting {
				available++
			}
		}
	}
	return machines, available, bound
}

// promised is how many available Machines are left once every set has acted.
func (s *simulation) promised() int {
	sum := 0
	seen := s.look()
	for i := range seen.sets {
		sum += seen.sets[i].available()
	}
	return sum
}

// step plans once and lets the world go on, checking the promises all the while.
func (s *simulation) step(t *testing.T, round int) (quiet bool) {
	p := makePlan(s.look())
	s.note("round %d", round)
	_, _, boundBefore := s.total()
	before := s.promised()
	s.apply(p)
	_, _, bound := s.total()
	// A bound that was exceeded before, since the user has lowered a number, may only fall.
	if limit := max(s.replicas+s.maxSurge, boundBefore); bound > limit {
		t.Fatalf("%d Machines may come to exist, %d are allowed\n%s", bound, limit, s.trace.String())
	}
	if minimum := s.replicas - s.maxUnavailable; s.promised() < min(minimum, before) {
		t.Fatalf("%d Machines left available, %d required, %d before\n%s", s.promised(), minimum, before, s.trace.String())
	}
	promised := s.promised()
	s.Shuffle(len(s.sets), func(i, j int) { s.sets[i], s.sets[j] = s.sets[j], s.sets[i] })
	lagging := false
	for _, set := range s.sets {
		if s.chaos && s.IntN(3) == 0 {
			lagging = true
			continue
		}
		s.act(set)
	}
	slices.SortFunc(s.sets, func(a, b *simSet) int { return cmp.Compare(a.name, b.name) })
	if machines, available, _ := s.total(); !lagging && (available != promised || machines > max(bound, boundBefore)) {
		t.Fatalf("%d Machines are available, %d were foreseen; %d exist of %d\n%s", available, promised, machines, bound, s.trace.String())
	}
	for _, set := range s.sets {
		for _, machine := range slices.Clone(set.machines) {
			if s.IntN(3) > 0 {
				s.happen(machine, set)
			}
		}
	}
	return len(p.scale) == 0 && !p.create
}

// converged says whether all Machines are current, available and of the right number.
func (s *simulation) converged() bool {
	for _, set := range s.sets {
		switch {
		case set.template != s.template && len(set.machines)+set.desired > 0:
			return false
		case set.template == s.template && (len(set.machines) != s.replicas || set.desired != s.replicas):
			return false
		}
	}
	_, available, _ := s.total()
	return available == s.replicas
}

// heal takes away what keeps the world from settling.
func (s *simulation) heal() {
	s.chaos = false
	for _, set := range s.sets {
		for _, machine := range set.machines {
			machine.doomed = false
		}
	}
	s.note("the world settles")
}

func TestSimulation(t *testing.T) {
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

func simulate(t *testing.T, seed uint64) {
	t.Helper()
	s := newSimulation(seed)
	s.note("seed %d: replay with MILLWRIGHT_SEED=%d", seed, seed)
	s.chaos = true
	for round := range 40 {
		s.step(t, round)
		s.users()
	}
	s.heal()
	// Each round of a rollout replaces at least one Machine, and each Machine takes a few rounds to come and go.
	for round := 40; round < 40+40*(s.replicas+3); round++ {
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
