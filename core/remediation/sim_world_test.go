package remediation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
	"millwright.dev/core/safety/freeze"
	. "millwright.dev/test/coretest/builder"
)

var simCluster = client.ObjectKey{Namespace: "ns", Name: "c"}

// What the simulated cloud and Nodes go by.
const (
	simBoot    = 2 * time.Minute
	simDrain   = time.Minute
	simMissed  = 40 * time.Second // until a Node that does not report is called Unknown
	simProbe   = 10 * time.Second // until a connection notices that nobody answers
	simReport  = time.Minute      // until all Nodes have reported after their API server was away
	simHorizon = 40 * time.Hour
)

// loss is how a Machine is lost.
type loss int

const (
	notReady loss = iota
	nodeDeleted
	instanceVanished
	losses
)

// simMachine is a Machine with what only the simulation knows of it. Objects are replaced, not changed, so that caches may keep them:
// the Machine is what the API server has, seen and nodeSeen are what the core's caches show.
type simMachine struct {
	*clusterv1.Machine
	seen           *clusterv1.Machine
	node, nodeSeen *corev1.Node
	set            *simSet
	zone           int
	gone           bool
	// behind means that the cache has not shown the latest change.
	behind bool
	// upAt is when its Node joins; never when it is zero, or when it is dead. lost is when it broke and how, until when (zero for ever).
	upAt, lost, back time.Time
	how              loss
	dead             bool
	// goneAt is when its deletion ends.
	goneAt time.Time
	// ill is since when it has not served in truth; zero while it does. served and available are when it did first, by the truth and by its condition.
	ill, served, available time.Time
	// handedAt is when it was found unhealthy, condemned when its replacement was recorded, and next the number of the retry that this is.
	handedAt, condemned time.Time
	next                int
	// replacement means that it was made for one that was condemned: after is when that was, chain which retry it is.
	replacement bool
	chain       int
	after       time.Time
}

// simSet is a MachineSet; of others a controller sees seen.
type simSet struct {
	*clusterv1.MachineSet
	seen     *clusterv1.MachineSet
	group    *simGroup
	template int
	// reserve is how many Machines it may still have because of a decrease that it has not looked at.
	reserve int
	behind  bool
}

// simGroup is a MachineDeployment, or a MachineSet without one, with the ledger of what is owed: Machines that are gone and were to be replaced.
type simGroup struct {
	deployment *clusterv1.MachineDeployment
	sets       []*simSet
	template   int
	// pinned is the failure domain; negative for none.
	pinned int
	// broken templates never come up.
	broken map[int]bool
	debts  []*simMachine
}

// simulation is a Cluster with a cloud and a core, in steps of time.
type simulation struct {
	dice *rand.Rand
	// now is the true time, skew what the clock of the core shows too much.
	now, jumped, renewed time.Time
	skew                 time.Duration
	// rollAt is when the template of a deployment changes; never when it is zero.
	rollAt time.Time
	step   time.Duration
	*process

	cluster  *clusterv1.Cluster
	groups   []*simGroup
	machines []*simMachine

	options   remediation.Options
	freezing  freeze.Options
	policies  policies
	stalled   stalls
	slots     *remediation.Slots
	histories histories
	// targetDown is since when no Node is seen, targetBack when one was the last time; cloudDown that no instance starts or ends.
	targetDown, targetBack time.Time
	nodesKnown             bool
	cloudDown, broken      bool
	zoneDown, zones        int

	// bought counts the Machines made after the start, rolled those that rollouts make; serial names them. most is how many there were
	// at most since nothing was in flight.
	bought, rolled, serial, most int
	// misjudged counts what a process could not know better that began when its clock was wrong.
	misjudged int
	problem   string
}

func newSlots() *remediation.Slots { return &remediation.Slots{} }

// newSimulation makes a Cluster of groups of those sizes; the last is a MachineSet without a deployment now and then.
func newSimulation(seed uint64, sizes ...int) *simulation {
	s := &simulation{
		dice: rand.New(rand.NewPCG(seed, 15)), now: Epoch, zoneDown: -1, zones: 3, freezing: freeze.DefaultOptions(),
		cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: simCluster.Namespace, Name: simCluster.Name}},
	}
	for _, kind := range []string{clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition} {
		conditions.Set(&s.cluster.Status.Conditions, conditions.True(kind, "Ready", ""), 1, Epoch)
	}
	s.step = time.Duration(12+s.dice.IntN(16)) * time.Second
	s.options = remediation.Options{
		MaxInFlight:           pick(s, "20%", "20%", "1", "3", "50%", "10%", ""),
		MaxInFlightPerCluster: pick(s, "30%", "30%", "2", "100%", "15%", ""),
		StopAbove:             pick(s, "100%", "95%", ""),
		Retry: remediation.Retry{
			Max: s.dice.IntN(5), Period: pick(s, 0, time.Minute, 10*time.Minute), MinHealthy: pick(s, 10*time.Minute, time.Hour),
		},
	}
	if s.dice.IntN(4) == 0 {
		s.cluster.Annotations = map[string]string{remediation.MaxInFlightAnnotation: pick(s, "25%", "4")}
	}
	s.policies = newPolicies(s)
	s.note("steps of %s, %+v, checks %d, default %+v", s.step, s.options, len(s.policies.checks), s.policies.defaults)
	s.start(0)
	for i, size := range sizes {
		group := s.addGroup(i, size, i > 0 && i == len(sizes)-1 && s.dice.IntN(3) == 0)
		for range size {
			m := s.create(group.sets[0], "")
			m.zone, m.upAt, m.ill = i%s.zones, s.now, time.Time{}
			m.zone = len(s.machines) % s.zones
			s.cloud()
			s.link(m)
		}
	}
	s.bought = 0
	s.catchUp(1)
	s.judge()
	s.catchUp(1)
	return s
}

func pick[T any](s *simulation, of ...T) T { return of[s.dice.IntN(len(of))] }

func (s *simulation) addGroup(i, size int, alone bool) *simGroup {
	group := &simGroup{pinned: -1, broken: map[int]bool{}}
	name := fmt.Sprint("d", i)
	if !alone {
		group.deployment = &clusterv1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1},
			Spec:       clusterv1.MachineDeploymentSpec{Replicas: ptr.To(int32(size)), ClusterName: simCluster.Name},
		}
		if s.dice.IntN(3) == 0 {
			group.deployment.Spec.Remediation.MaxInFlight = ptr.To(pick(s, intOrString("2"), intOrString("30%")))
		}
		strategy := &group.deployment.Spec.Rollout.Strategy
		strategy.Type = pick(s, clusterv1.RollingUpdateMachineDeploymentStrategyType, clusterv1.RollingUpdateMachineDeploymentStrategyType,
			clusterv1.OnDeleteMachineDeploymentStrategyType)
		strategy.RollingUpdate.MaxSurge = ptr.To(pick(s, intOrString("1"), intOrString("25%"), intOrString("0")))
		if size > 100 {
			strategy.RollingUpdate.MaxSurge = ptr.To(intOrString("20%"))
		}
		strategy.RollingUpdate.MaxUnavailable = ptr.To(pick(s, intOrString("0"), intOrString("1"), intOrString("20%")))
	}
	s.groups = append(s.groups, group)
	s.addSet(group, size)
	return group
}

// addSet makes the current set of a group.
func (s *simulation) addSet(group *simGroup, replicas int) *simSet {
	s.serial++
	name := fmt.Sprintf("s%04d", s.serial)
	set := &simSet{group: group, template: group.template, MachineSet: &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1, Annotations: map[string]string{}},
		Spec:       clusterv1.MachineSetSpec{Replicas: ptr.To(int32(replicas)), ClusterName: simCluster.Name},
	}}
	revision := int64(1)
	for _, other := range group.sets {
		revision = max(revision, machines.Revision(other)+1)
	}
	set.Annotations[clusterv1.RevisionAnnotation] = fmt.Sprint(revision)
	if group.deployment != nil {
		set.OwnerReferences = []metav1.OwnerReference{{
			Kind: "MachineDeployment", Name: group.deployment.Name, UID: group.deployment.UID, Controller: ptr.To(true),
		}}
	}
	set.seen = set.MachineSet
	group.sets = append(group.sets, set)
	return set
}

// create makes a Machine: in its failure domain, or in the zone with the fewest that has room. What it replaces is known by the
// annotation; whoever forgets that has it noted here all the same.
func (s *simulation) create(set *simSet, record string) *simMachine {
	s.serial++
	s.bought++
	zone := set.group.pinned
	if count := s.inZones(set); zone < 0 {
		for z := range s.zones {
			if z != s.zoneDown && (zone < 0 || count[z] < count[zone]) {
				zone = z
			}
		}
	}
	m := &simMachine{set: set, zone: zone, ill: s.now, Machine: Machine(fmt.Sprintf("m%06d", s.serial), Unavailable, Nodeless)}
	m.Labels = nil
	m.CreationTimestamp = metav1.NewTime(s.now.Truncate(time.Second))
	// The first conditions of an available Machine are those of the builder.
	m.Status.Conditions = nil
	m.report(s.stamp(), conditions.False(clusterv1.MachineAvailableCondition, "NotAvailable", ""))
	m.dead = s.broken || set.group.broken[set.template]
	if record != "" {
		m.Annotations = map[string]string{remediation.ReplacesAnnotation: record}
	}
	s.machines = append(s.machines, m)
	s.payDebt(m)
	s.note("%s of %s makes %s in zone %d, %s", set.Name, set.group.key(), m.Name, zone, record)
	return m
}

func (s *simulation) inZones(set *simSet) []int {
	count := make([]int, s.zones)
	for _, m := range s.machines {
		if m.set == set && !m.gone {
			count[m.zone]++
		}
	}
	return count
}

// change replaces a Machine by a changed copy.
func (m *simMachine) change(f func(*clusterv1.Machine)) {
	changed := m.Machine.DeepCopy()
	f(changed)
	m.Machine = changed
}

func (m *simMachine) says(kind string) bool { return says(m.Machine, kind) }

func says(machine *clusterv1.Machine, kind string) bool {
	return slices.ContainsFunc(machine.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind && c.Status == metav1.ConditionTrue })
}

func (m *simMachine) handed() bool {
	return machines.FailedHealthCheck(m.Machine) && machines.OwnerRemediationRequested(m.Machine)
}

func (m *simMachine) report(stamp time.Time, c metav1.Condition) {
	m.change(func(machine *clusterv1.Machine) { conditions.Set(&machine.Status.Conditions, c, 1, stamp) })
}

// of are the Machines of a set that exist.
func (s *simulation) of(set *simSet) []*simMachine {
	return slices.DeleteFunc(slices.Clone(s.machines), func(m *simMachine) bool { return m.set != set || m.gone })
}

// note tells what has happened, when a seed is repeated.
func (s *simulation) note(format string, args ...any) {
	if tracing {
		fmt.Printf("%s: %s\n", s.now.Sub(Epoch), fmt.Sprintf(format, args...))
	}
}

// fail notes the first thing that must not be.
func (s *simulation) fail(format string, args ...any) {
	if s.problem == "" {
		s.problem = fmt.Sprintf("after %s: ", s.now.Sub(Epoch)) + fmt.Sprintf(format, args...)
	}
}
