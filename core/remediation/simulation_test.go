package remediation_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
	"millwright.dev/core/safety/freeze"
	. "millwright.dev/test/coretest/builder"
)

var simCluster = client.ObjectKey{Namespace: "ns", Name: "c"}

// reconcile is what a set does: settle, replace, create.
func (s *simulation) reconcile(set *simSet) {
	view := s.view(set)
	own := types.UID(set.name)
	flight := view.Flights[own]
	if s.dice.IntN(4) > 0 {
		set.records = slices.DeleteFunc(slices.Clone(set.records), func(r remediation.Record) bool { return flight.Settled[r.Machine] })
		for _, m := range s.of(set.name, true) {
			s.recordAvailable(m)
		}
	}
	view = s.view(set)
	if !s.slots.Verified(simCluster) {
		s.slots.Verify(simCluster, s.live(view), view, s.clock())
	}
	s.replace(set, s.slots.Decide(simCluster, own, view, s.input(set, view)))
	missing := set.replicas - len(s.of(set.name, true))
	owed := s.view(set).Flights[own].Owed
	for n := range missing {
		if s.dice.IntN(10) == 0 {
			return
		}
		record := ""
		if n < len(owed) {
			record = owed[n].String()
		}
		s.create(set.name, record)
	}
}

// recordAvailable writes to a Machine when it became available, as the cache shows it.
func (s *simulation) recordAvailable(seen *clusterv1.Machine) {
	record := remediation.RecordOf(seen)
	if record == nil || record.Available != nil || remediation.Coming(seen) || !seen.DeletionTimestamp.IsZero() {
		return
	}
	if m := s.machines[seen.Name]; m != nil && m.Machine == seen {
		since := s.clock()
		record.Available = &since
		m.change(func(c *clusterv1.Machine) {
			c.Annotations = map[string]string{remediation.ReplacesAnnotation: record.String()}
		})
	}
}

// live is what the API server has and the cache may not show.
func (s *simulation) live(view remediation.View) []remediation.Slot {
	var live []remediation.Slot
	for name, set := range s.sets {
		for _, record := range set.records {
			if !view.Flights[types.UID(name)].Settled[record.Machine] {
				live = append(live, remediation.Slot{Group: types.UID(name), Machine: record.Machine})
			}
		}
	}
	for name, m := range s.machines {
		if s.cached[name] == nil && remediation.Coming(m.Machine) {
			live = append(live, remediation.Slot{Group: types.UID(m.set), Machine: name})
		}
	}
	return live
}

func (s *simulation) input(set *simSet, view remediation.View) remediation.Input {
	total := max(view.Machines, view.Wanted)
	in := remediation.Input{
		Now: s.clock(), Frozen: s.frozen, Retry: s.options.Retry, Unhealthy: view.Unhealthy, Machines: total,
		Deployment: s.options.LimitOf(&clusterv1.MachineDeployment{}, nil, set.replicas),
		Cluster:    s.options.LimitOfCluster(&clusterv1.Cluster{}, total), Stop: s.options.StopOf(&clusterv1.Cluster{}, total),
	}
	in.Candidates = s.candidates(set)
	return in
}

// candidates are the unhealthy Machines of a set in the order in which MachineSets have them.
func (s *simulation) candidates(set *simSet) []remediation.Candidate {
	recorded := map[string]bool{}
	for _, r := range set.records {
		recorded[r.Machine] = true
	}
	var list []remediation.Candidate
	for _, m := range machines.Remediated(s.of(set.name, true)) {
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		_, demanded := m.Annotations[clusterv1.RemediateMachineAnnotation]
		found := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
		list = append(list, remediation.Candidate{
			Name: m.Name, Begun: recorded[m.Name] || remediation.Begun(m), Demanded: demanded, Replaces: remediation.RecordOf(m),
			FailedAt: found.LastTransitionTime.Time, Reason: found.Reason,
		})
	}
	slices.SortStableFunc(list, func(a, b remediation.Candidate) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Name, a.Name))
	})
	return list
}

func rank(c remediation.Candidate) int {
	switch {
	case c.Begun:
		return 0
	case c.Demanded:
		return 1
	}
	return 2
}

// replace does what was decided, with writes that fail before or after their effect, and a process that dies in between.
func (s *simulation) replace(set *simSet, d remediation.Decision) {
	known := map[string]bool{}
	for _, r := range set.records {
		known[r.Machine] = true
	}
	var granted []remediation.Verdict
	records := slices.Clone(set.records)
	for _, v := range d.Verdicts {
		if v.Allowed() {
			if s.frozen.Active() {
				s.fail("%s is replaced in a freeze", v.Name)
			}
			granted = append(granted, v)
			if !known[v.Name] {
				records = append(records, v.Record)
			}
		}
	}
	switch s.dice.IntN(12) {
	case 0: // refused
		for _, v := range granted {
			if v.Fresh {
				s.slots.Release(simCluster, types.UID(set.name), v.Name)
			}
		}
		return
	case 1: // lost before its effect
		return
	case 2: // lost after it
		set.records = records
		return
	}
	set.records = records
	for _, v := range granted {
		m := s.machines[v.Name]
		if m == nil || !m.DeletionTimestamp.IsZero() || m.Machine != s.cached[v.Name] && !remediation.Begun(m.Machine) {
			continue
		}
		m.change(func(c *clusterv1.Machine) { begun(c) })
		if s.dice.IntN(8) == 0 {
			return
		}
		m.change(func(c *clusterv1.Machine) { c.DeletionTimestamp = &metav1.Time{Time: s.clock()} })
	}
}

func (s *simulation) fail(format string, args ...any) {
	if s.problem == "" {
		s.problem = fmt.Sprintf("after %s: ", s.now.Sub(Epoch)) + fmt.Sprintf(format, args...)
	}
}

// check holds what is in flight in truth against the limits.
func (s *simulation) check() {
	all, wanted := 0, 0
	for _, name := range slices.Sorted(maps.Keys(s.sets)) {
		set := s.sets[name]
		var list []*clusterv1.Machine
		for _, m := range s.machines {
			if m.set == name {
				list = append(list, m.Machine)
			}
		}
		held := len(remediation.InFlight([]remediation.Set{{Machines: list, Replicas: set.replicas, Records: set.records}}).Held)
		if limit := s.options.LimitOf(&clusterv1.MachineDeployment{}, nil, set.replicas).Max; held > limit {
			s.fail("%d in flight in %s, and the limit is %d", held, name, limit)
		}
		if len(list) > set.replicas {
			s.fail("%s has %d Machines of %d", name, len(list), set.replicas)
		}
		all, wanted = all+held, wanted+set.replicas
	}
	if limit := s.options.LimitOfCluster(&clusterv1.Cluster{}, wanted).Max; all > limit {
		s.fail("%d in flight in the Cluster, and the limit is %d", all, limit)
	}
}

// healed reports whether all serve and nothing is in flight.
func (s *simulation) healed() bool {
	count := map[string]int{}
	for _, m := range s.machines {
		if !m.DeletionTimestamp.IsZero() || !s.serves(m) || m.handed() {
			return false
		}
		count[m.set]++
	}
	for name, set := range s.sets {
		if count[name] != set.replicas || len(set.records) > 0 {
			return false
		}
	}
	return true
}

// run goes on until done, which must come before the horizon.
func (s *simulation) run(what string, done func() bool) {
	for end := s.now.Add(simHorizon); s.problem == "" && !done(); s.step() {
		if s.now.After(end) {
			s.fail("%s never came", what)
		}
	}
}

func (s *simulation) wait(d time.Duration) {
	end := s.now.Add(d)
	s.run("the time", func() bool { return !s.now.Before(end) })
}

// freezeFor freezes for a time, and lets the judge begin anew then, as Source.NotBefore has it do.
func (s *simulation) freezeFor(reason string, d time.Duration) {
	s.frozen = freeze.State{Reason: reason, Since: s.clock()}
	s.wait(d)
	s.frozen = freeze.State{}
	for _, m := range s.machines {
		m.unwell = time.Time{}
		if m.handed() && m.DeletionTimestamp.IsZero() {
			m.report(s.clock(), clusterv1.MachineHealthCheckSucceededCondition, true)
		}
	}
	s.catchUp(1)
}

// lose breaks the Nodes of n Machines, for a time or for ever.
func (s *simulation) lose(n int, d time.Duration) {
	names := slices.Sorted(maps.Keys(s.machines))
	s.dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:n] {
		m := s.machines[name]
		m.lost, m.back = s.now, time.Time{}
		if d > 0 {
			m.back = s.now.Add(d)
		}
	}
}

// expectBought holds what was bought against the formula of docs/guides/safety.md, and against what is needed at least.
func (s *simulation) expectBought(least, most int) {
	if s.bought < least && s.problem == "" {
		s.fail("%d Machines were bought, and %d are needed", s.bought, least)
	}
	if s.bought > most {
		s.fail("%d Machines were bought, and the formula allows %d", s.bought, most)
	}
}

// scenarios each return the simulation after its end.
var scenarios = map[string]func(seed uint64) *simulation{
	"80 of 100 Nodes lost": func(seed uint64) *simulation {
		s := newSimulation(seed, 60, 40)
		s.lose(80, 0)
		s.run("healing", s.healed)
		s.expectBought(80, 80)
		return s
	},
	"a zone lost": func(seed uint64) *simulation {
		s := newSimulation(seed, 12, 9)
		s.zoneDown = 0
		lost := 0
		for _, m := range s.machines {
			if m.zone == 0 {
				m.lost = s.now
				lost++
			}
		}
		s.run("healing", s.healed)
		s.expectBought(lost, lost)
		return s
	},
	"flapping": func(seed uint64) *simulation {
		s := newSimulation(seed, 10, 5)
		lost := 0
		for range 30 {
			s.lose(2, time.Duration(1+s.dice.IntN(8))*time.Minute)
			lost += 2
			s.wait(time.Duration(s.dice.IntN(6)) * time.Minute)
		}
		s.run("healing", s.healed)
		s.expectBought(0, lost)
		return s
	},
	"a template that never comes up": func(seed uint64) *simulation {
		s := newSimulation(seed, 10, 6)
		lost := 8
		s.broken = true
		s.lose(lost, 0)
		s.wait(3 * time.Hour)
		// In flight at once are at most 2 and 2, and in the Cluster 5.
		s.expectBought(4, min(lost, 4)*(simRetryMax+1))
		before := s.bought
		s.wait(2 * time.Hour)
		if s.bought != before {
			s.fail("Machines are bought for ever")
		}
		// It is mended, and someone asks for one more try of those that failed.
		s.broken = false
		for _, m := range s.machines {
			if m.handed() {
				m.change(func(c *clusterv1.Machine) {
					c.Annotations = map[string]string{
						clusterv1.RemediateMachineAnnotation: "",
						remediation.ReplacesAnnotation:       c.Annotations[remediation.ReplacesAnnotation],
					}
				})
			}
		}
		s.run("healing", s.healed)
		return s
	},
	"target API server away for 10 minutes": func(seed uint64) *simulation {
		s := newSimulation(seed, 20, 10)
		s.wait(time.Duration(s.dice.IntN(600)) * time.Second)
		s.targetDown = true
		s.wait(40 * time.Second)
		s.frozen = freeze.State{Reason: freeze.ReasonTargetAPIServerUnreachable, Since: s.clock()}
		s.wait(10 * time.Minute)
		s.targetDown = false
		s.freezeFor(freeze.ReasonRecovering, simGrace)
		s.run("healing", s.healed)
		s.expectBought(0, 0)
		return s
	},
	"cloud API away for an hour": func(seed uint64) *simulation {
		s := newSimulation(seed, 15, 5)
		s.cloudDown = true
		s.lose(6, 0)
		s.wait(time.Hour)
		s.cloudDown = false
		s.run("healing", s.healed)
		s.expectBought(6, 6*(simRetryMax+1))
		return s
	},
	"clock jump": func(seed uint64) *simulation {
		s := newSimulation(seed, 15, 5)
		s.lose(s.dice.IntN(5), 0)
		lost := 0
		for _, m := range s.machines {
			if !m.lost.IsZero() {
				lost++
			}
		}
		s.wait(time.Duration(s.dice.IntN(900)) * time.Second)
		s.skew = time.Duration(1-2*s.dice.IntN(2)) * time.Hour
		s.freezeFor(freeze.ReasonClockJumped, simGrace)
		s.run("healing", s.healed)
		s.expectBought(lost, lost)
		return s
	},
}

// TestSimulation runs seeds, each of which is a scenario with other dice: more with SIMULATION_RUNS, one again with SEED.
func TestSimulation(t *testing.T) {
	runs, first := uint64(70), uint64(0)
	if n, err := strconv.ParseUint(os.Getenv("SIMULATION_RUNS"), 10, 32); err == nil {
		runs = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		runs, first = 1, n
	}
	names := slices.Sorted(maps.Keys(scenarios))
	for seed := first; seed < first+runs; seed++ {
		name := names[seed%uint64(len(names))]
		if s := scenarios[name](seed); s.problem != "" {
			t.Fatalf("seed %d, %s: %s", seed, name, s.problem)
		}
	}
}
