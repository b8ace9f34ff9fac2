package remediation_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
	"millwright.dev/core/safety/freeze"
	. "millwright.dev/test/coretest/builder"
)

// What the simulated judge and cloud go by.
const (
	simStep     = 20 * time.Second
	simBoot     = 2 * time.Minute
	simStartup  = 10 * time.Minute
	simUnwell   = 5 * time.Minute
	simGrace    = 5 * time.Minute
	simDrain    = time.Minute
	simHorizon  = 30 * time.Hour
	simRetryMax = 3
)

// simMachine is a Machine with what only the cloud knows of it. The Machine is replaced, not changed, so that caches may keep it.
type simMachine struct {
	*clusterv1.Machine
	set  string
	zone int
	// upAt is when its Node joins; never when it is zero. lost is when the Node broke, until when (zero for for ever).
	upAt, lost, back time.Time
	// goneAt is when its deletion ends.
	goneAt time.Time
	// unwell is since when the judge sees something.
	unwell time.Time
}

// simSet is a set; its records are replaced, not changed.
type simSet struct {
	name     string
	replicas int
	records  []remediation.Record
}

// simulation is a Cluster of sets, a cloud, a judge and the decider, in steps of time. Everything that is written is in real; cached
// is what the controllers see of other sets, and of the conditions of their own Machines.
type simulation struct {
	dice *rand.Rand
	// now is the true time, skew what the clock of the core shows too much.
	now  time.Time
	skew time.Duration

	sets     map[string]*simSet
	machines map[string]*simMachine
	// cachedSets and cached are older copies.
	cachedSets map[string]simSet
	cached     map[string]*clusterv1.Machine

	options remediation.Options
	slots   remediation.Slots
	frozen  freeze.State
	// targetDown means that no Node is seen; cloudDown that no instance starts or ends; broken that what starts never joins.
	targetDown, cloudDown, broken bool
	zoneDown                      int
	zones                         int

	// bought counts the Machines made after the start, serial names them.
	bought, serial int
	problem        string
}

func newSimulation(seed uint64, sizes ...int) *simulation {
	s := &simulation{
		dice: rand.New(rand.NewPCG(seed, 15)), now: Epoch, zoneDown: -1, zones: 3,
		sets: map[string]*simSet{}, machines: map[string]*simMachine{}, cachedSets: map[string]simSet{}, cached: map[string]*clusterv1.Machine{},
		options: remediation.Options{
			MaxInFlight: "20%", MaxInFlightPerCluster: "30%", StopAbove: "100%",
			Retry: remediation.Retry{Max: simRetryMax, Period: 10 * time.Minute, MinHealthy: time.Hour},
		},
	}
	for i, size := range sizes {
		set := &simSet{name: fmt.Sprint("s", i), replicas: size}
		s.sets[set.name] = set
		for range size {
			m := s.create(set.name, "")
			m.upAt = s.now
		}
	}
	s.bought = 0
	s.judge()
	s.catchUp(1)
	return s
}

// clock is what the core believes the time to be.
func (s *simulation) clock() time.Time { return s.now.Add(s.skew) }

// create makes a Machine in the zone with the fewest that has room.
func (s *simulation) create(set, record string) *simMachine {
	s.serial++
	s.bought++
	count := make([]int, s.zones)
	for _, m := range s.machines {
		if m.set == set {
			count[m.zone]++
		}
	}
	zone := -1
	for z := range s.zones {
		if z != s.zoneDown && (zone < 0 || count[z] < count[zone]) {
			zone = z
		}
	}
	m := &simMachine{set: set, zone: zone, Machine: Machine(fmt.Sprintf("m%04d", s.serial), Unavailable, Nodeless)}
	m.Labels["set"] = set
	m.CreationTimestamp = metav1.NewTime(s.clock())
	if record != "" {
		m.Annotations = map[string]string{remediation.ReplacesAnnotation: record}
	}
	s.machines[m.Name] = m
	return m
}

// change replaces a Machine by a changed copy.
func (m *simMachine) change(f func(*clusterv1.Machine)) {
	changed := m.Machine.DeepCopy()
	f(changed)
	m.Machine = changed
}

func (m *simMachine) says(kind string) bool {
	for _, c := range m.Status.Conditions {
		if c.Type == kind {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// serves reports whether the Node of a Machine is fine in truth.
func (s *simulation) serves(m *simMachine) bool {
	lost := !m.lost.IsZero() && !s.now.Before(m.lost) && (m.back.IsZero() || s.now.Before(m.back))
	return !m.upAt.IsZero() && !s.now.Before(m.upAt) && !lost
}

// step lets simStep go by.
func (s *simulation) step() {
	s.now = s.now.Add(simStep)
	s.cloud()
	s.judge()
	s.catchUp(s.dice.Float64())
	if s.dice.IntN(200) == 0 {
		// A new process begins; its cache may be as old as that of the one before.
		s.slots = remediation.Slots{}
	}
	names := slices.Sorted(maps.Keys(s.sets))
	s.dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		s.reconcile(s.sets[name])
		s.check()
	}
}

// cloud starts and ends instances.
func (s *simulation) cloud() {
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		m := s.machines[name]
		switch {
		case !m.DeletionTimestamp.IsZero():
			if m.goneAt.IsZero() {
				m.goneAt = s.now.Add(simDrain)
			}
			if !s.cloudDown && !s.now.Before(m.goneAt) {
				delete(s.machines, name)
			}
		case m.upAt.IsZero() && !s.cloudDown && !s.broken && m.zone != s.zoneDown && m.lost.IsZero():
			m.upAt = s.now.Add(simBoot + time.Duration(s.dice.IntN(60))*time.Second)
		}
	}
}

// judge is a plain one by timeouts. It sees nothing of Nodes while the target's API server is away, and concludes what it always
// does from that; after a freeze it begins anew.
func (s *simulation) judge() {
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		m := s.machines[name]
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		fine := s.serves(m) && !s.targetDown
		if fine != m.says(clusterv1.MachineAvailableCondition) {
			m.report(s.clock(), clusterv1.MachineAvailableCondition, fine)
		}
		timeout := simUnwell
		if m.upAt.IsZero() || s.now.Before(m.upAt) {
			timeout = simStartup
		}
		switch {
		case fine:
			m.unwell = time.Time{}
			if m.handed() {
				m.report(s.clock(), clusterv1.MachineHealthCheckSucceededCondition, true)
				m.change(func(c *clusterv1.Machine) {
					c.Status.Conditions = slices.DeleteFunc(c.Status.Conditions, func(c metav1.Condition) bool {
						return c.Type == clusterv1.MachineOwnerRemediatedCondition
					})
				})
			}
		case m.unwell.IsZero():
			m.unwell = s.clock()
		case s.clock().Sub(m.unwell) >= timeout && !m.handed():
			m.report(s.clock(), clusterv1.MachineHealthCheckSucceededCondition, false)
			m.report(s.clock(), clusterv1.MachineOwnerRemediatedCondition, false)
		}
	}
}

func (m *simMachine) handed() bool {
	return machines.FailedHealthCheck(m.Machine) && machines.OwnerRemediationRequested(m.Machine)
}

func (m *simMachine) report(now time.Time, kind string, is bool) {
	condition := conditions.False(kind, "Simulated", "")
	if is {
		condition = conditions.True(kind, "Simulated", "")
	}
	m.change(func(c *clusterv1.Machine) { conditions.Set(&c.Status.Conditions, condition, 1, now) })
}

// catchUp has the caches take over what is there, a share of it.
func (s *simulation) catchUp(share float64) {
	for name, set := range s.sets {
		if s.dice.Float64() < share {
			s.cachedSets[name] = *set
		}
	}
	for name := range s.cached {
		if _, ok := s.machines[name]; !ok && s.dice.Float64() < share {
			delete(s.cached, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		if s.dice.Float64() < share {
			s.cached[name] = s.machines[name].Machine
		}
	}
}

// of are the Machines of a set: its own as it wrote them, with conditions and annotations as cached, or as cached altogether.
func (s *simulation) of(set string, own bool) []*clusterv1.Machine {
	var list []*clusterv1.Machine
	if own {
		for _, name := range slices.Sorted(maps.Keys(s.machines)) {
			m := s.machines[name]
			if m.set != set {
				continue
			}
			seen := s.cached[name]
			if seen == nil || !m.DeletionTimestamp.IsZero() {
				seen = m.Machine
			}
			list = append(list, seen)
		}
		return list
	}
	for _, name := range slices.Sorted(maps.Keys(s.cached)) {
		if owner := s.ownerOf(name); owner == set {
			list = append(list, s.cached[name])
		}
	}
	return list
}

// ownerOf is the set of a Machine that may be gone.
func (s *simulation) ownerOf(name string) string {
	if m := s.machines[name]; m != nil {
		return m.set
	}
	return s.cached[name].Labels["set"]
}

// view is what a set sees.
func (s *simulation) view(own *simSet) remediation.View {
	view := remediation.View{Flights: map[types.UID]remediation.Flight{}}
	for name := range s.sets {
		set := s.cachedSets[name]
		if name == own.name {
			set = *own
		}
		list := s.of(name, name == own.name)
		view.Machines += len(list)
		view.Wanted += set.replicas
		for _, m := range list {
			if machines.FailedHealthCheck(m) {
				view.Unhealthy++
			}
		}
		view.Flights[types.UID(name)] = remediation.InFlight([]remediation.Set{{Machines: list, Replicas: set.replicas, Records: set.records}})
	}
	return view
}
