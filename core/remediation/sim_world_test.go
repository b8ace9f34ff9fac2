package remediation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
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
	simProbe   = 10 * time.Second // until a connection notices that nothing answers
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
	// ill is since when it has not served in truth; zero while it does. served and available are when it did first, by the truth and by its
	// condition.
	ill, served, available time.Time
	// handedAt is when it was found unhealthy, condemned when its replacement was recorded, and next the number of the retry that this is.
	handedAt, condemned time.Time
	next                int
	// replacement means that it was created for one that was condemned: after is when that was, chain which retry it is.
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

// simGroup is a MachineDeployment, or a MachineSet without one, with the list of what is owed: Machines that are gone and were to be
// replaced.
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
	now  time.Time
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
	// targetUntil is the end of the latest outage, known from its beginning.
	targetUntil       time.Time
	nodesKnown        bool
	cloudDown, broken bool
	zoneDown, zones   int

	// bought counts the Machines created after the start, rolled those that rollouts create; serial names them. most is how many there were
	// at most since nothing was in flight.
	bought, rolled, serial, most int
	violation                    string
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

func (m *simMachine) isTrue(kind string) bool { return isTrue(m.Machine, kind) }

func isTrue(machine *clusterv1.Machine, kind string) bool {
	return slices.ContainsFunc(
		machine.Status.Conditions,
		func(c metav1.Condition) bool { return c.Type == kind && c.Status == metav1.ConditionTrue },
	)
}

// note prints what has happened, when a seed is repeated.
func (s *simulation) note(format string, args ...any) {
	if tracing {
		fmt.Printf("%s: %s\n", s.now.Sub(Epoch), fmt.Sprintf(format, args...))
	}
}

// fail notes the first thing that must not be.
func (s *simulation) fail(format string, args ...any) {
	if s.violation == "" {
		s.violation = fmt.Sprintf("after %s: ", s.now.Sub(Epoch)) + fmt.Sprintf(format, args...)
	}
}
