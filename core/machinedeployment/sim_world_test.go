package machinedeployment

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// simMachine is a Machine in a simulated world.
type simMachine struct {
	name      int
	available bool
	deleting  bool
	// chosen Machines were marked to go when the deployment shrinks.
	chosen bool
	// doomed Machines never become available.
	doomed bool
	// unhealthy Machines were marked by a health check; their set deletes them, one at a time.
	unhealthy bool
}

// simSet is a MachineSet in a simulated world.
type simSet struct {
	name     string
	template int
	desired  int
	// acted is the number that the set has looked at last.
	acted int
	// reserve is the number before the decreases that it has not looked at.
	reserve  int
	machines []*simMachine
	// blind means that the set does not prefer to delete what is not available: priorities that a user has given to the
	// Machines go before that.
	blind bool
	// direction is that of the last intent for the set, and moment when it was.
	direction, moment int
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
	// chaos lets Machines fail, people edit and sets lag.
	chaos bool
	// moments counts what has happened but for intents: with nothing between, no intent may undo another.
	moments int
	// created counts Machines.
	created int
	// blind is what its sets are.
	blind bool
	// exceeded names a set that created Machines when there were enough.
	exceeded string
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{Rand: rand.New(rand.NewPCG(seed, 1))}
	s.replicas = s.IntN(12)
	s.maxSurge = s.IntN(4)
	s.maxUnavailable = s.IntN(4)
	if s.maxSurge+s.maxUnavailable == 0 {
		s.maxUnavailable = 1
	}
	s.setStrategy(s.IntN(6))
	s.blind = s.IntN(3) == 0
	s.note("replicas %d, surge %d, unavailable %d, %s, recreate %t, blind %t", s.replicas, s.maxSurge, s.maxUnavailable, s.strategy, s.recreate, s.blind)
	return s
}

// setStrategy chooses one of the strategies; most are rolling updates. The limits are those that the reconciler
// hands to the planner with the strategy.
func (s *simulation) setStrategy(n int) {
	s.strategy, s.recreate = clusterv1.RollingUpdateMachineDeploymentStrategyType, false
	switch n {
	case 0:
		s.strategy = clusterv1.OnDeleteMachineDeploymentStrategyType
		s.maxSurge, s.maxUnavailable = 0, 0
	case 1:
		s.recreate = true
		s.maxSurge, s.maxUnavailable = 0, 0
	}
}

func (s *simulation) note(format string, args ...any) {
	fmt.Fprintf(&s.trace, format+"\n", args...)
}

// happened notes something that a later plan may take into account.
func (s *simulation) happened(format string, args ...any) {
	s.moments++
	s.note("  "+format, args...)
}

// order returns the Machines as the set would delete them: deleting ones, then chosen ones, then by availability
// unless the set is blind to it, then by name.
func (set *simSet) order() []*simMachine {
	rank := func(m *simMachine) int {
		switch {
		case m.deleting:
			return 0
		case m.chosen:
			return 1
		case !m.available && !set.blind:
			return 2
		default:
			return 3
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
	current := s.current()
	for _, set := range s.sets {
		seen := setView{
			name: set.name, current: set == current, desired: set.desired, reserve: set.reserve, settled: set.acted == set.desired,
		}
		for _, machine := range set.order() {
			seen.order = append(seen.order, machine.available && !machine.deleting)
			if machine.deleting {
				seen.deleting++
			} else if machine.chosen {
				seen.chosen++
			}
		}
		v.sets = append(v.sets, seen)
	}
	return v
}

// current is the set of the wanted template: of several the one with most replicas.
func (s *simulation) current() *simSet {
	var current *simSet
	for _, set := range s.sets {
		if set.template == s.template && (current == nil || set.desired > current.desired) {
			current = set
		}
	}
	return current
}

// apply executes the plan.
func (s *simulation) apply(p plan) {
	for _, i := range p.scale {
		set := s.set(i.set)
		s.note("  scale %s %d→%d: %s", i.set, i.from, i.to, i.reason)
		order := set.order()
		for _, at := range i.remove {
			s.note("  delete Machine %d of %s", order[at].name, i.set)
			order[at].deleting = true
		}
		set.desired = i.to
		if i.to < i.from {
			set.reserve = max(set.reserve, i.from)
		}
	}
	if p.create {
		set := &simSet{name: fmt.Sprintf("s%03d", len(s.sets)), template: s.template, desired: p.createReplicas, blind: s.blind}
		s.note("  create %s with %d: %s", set.name, set.desired, p.createReason)
		s.sets = append(s.sets, set)
	}
}

func (s *simulation) set(name string) *simSet {
	for _, set := range s.sets {
		if set.name == name {
			return set
		}
	}
	return nil
}

// act lets one set scale to its replicas, and replace what a health check has marked.
func (s *simulation) act(set *simSet) {
	set.acted, set.reserve = set.desired, 0
	for len(set.machines) < set.desired && (set == s.current() || s.strategy != clusterv1.OnDeleteMachineDeploymentStrategyType || s.paused) {
		s.names++
		s.created++
		set.machines = append(set.machines, &simMachine{name: s.names, doomed: s.chaos && s.IntN(8) == 0})
		s.moments++
		if total := s.count().machines; s.rolling() && total > s.replicas+s.maxSurge {
			s.exceeded = fmt.Sprintf("%s makes Machine %d, the %d. of at most %d", set.name, s.names, total, s.replicas+s.maxSurge)
		}
	}
	order := set.order()
	for i := range len(order) - set.desired {
		if !order[i].deleting {
			order[i].deleting = true
			s.happened("%s deletes Machine %d", set.name, order[i].name)
		}
	}
}

// rolling reports whether the strategy is a rolling update that continues.
func (s *simulation) rolling() bool {
	return !s.paused && !s.recreate && s.strategy == clusterv1.RollingUpdateMachineDeploymentStrategyType
}

// remediate lets the current set delete one Machine that a health check has marked.
func (s *simulation) remediate() {
	current := s.current()
	if current == nil {
		return
	}
	for _, machine := range current.machines {
		if machine.unhealthy && machine.deleting {
			return
		}
	}
	for _, machine := range current.machines {
		if machine.unhealthy {
			machine.deleting = true
			s.happened("%s remediates Machine %d", current.name, machine.name)
			return
		}
	}
}

// happen lets one Machine move on.
func (s *simulation) happen(machine *simMachine, set *simSet) {
	switch {
	case machine.deleting:
		set.machines = slices.DeleteFunc(set.machines, func(m *simMachine) bool { return m == machine })
		s.happened("Machine %d of %s is gone", machine.name, set.name)
	case !machine.available && !machine.doomed && !machine.unhealthy:
		machine.available = true
		s.happened("Machine %d of %s is available", machine.name, set.name)
	case s.chaos && s.IntN(10) == 0:
		machine.available = false
		machine.doomed = s.IntN(2) == 0
		machine.unhealthy = s.IntN(3) == 0
		s.happened("Machine %d of %s fails", machine.name, set.name)
	}
}
