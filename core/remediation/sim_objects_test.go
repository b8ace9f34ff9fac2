package remediation_test

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

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
// annotation; even if that is forgotten it is recorded here.
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
