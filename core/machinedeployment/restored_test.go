package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/scopes"
	"millwright.dev/core/machines"
)

// restoredScope is a deployment with an outdated set of restored Machines and a current set that serves already.
func restoredScope(now time.Time, change func(*clusterv1.Machine)) *scope {
	set := func(name string, replicas int32) *clusterv1.MachineSet {
		return &clusterv1.MachineSet{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: clusterv1.MachineSetSpec{Replicas: ptr.To(replicas)},
			Status: clusterv1.MachineSetStatus{Replicas: ptr.To(replicas)},
		}
	}
	outdated, current := set("restored", 2), set("current", 2)
	s := &scope{Base: scopes.Base[*clusterv1.MachineDeployment, clusterv1.MachineDeploymentStatus]{Now: now}}
	s.settings = settings{replicas: 2, maxSurge: 1, strategy: clusterv1.RollingUpdateMachineDeploymentStrategyType}
	s.sets, s.current = []*clusterv1.MachineSet{outdated, current}, current
	s.machines = map[types.UID][]*clusterv1.Machine{}
	for _, set := range s.sets {
		for _, name := range []string{"-a", "-b"} {
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: set.Name + name}}
			if set == current {
				machine.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineAvailableCondition, Status: metav1.ConditionTrue}}
			} else {
				change(machine)
			}
			s.machines[set.UID] = append(s.machines[set.UID], machine)
		}
	}
	return s
}

// A restored Machine has no status. It is not deleted as an outdated Machine that is not available, until it is known whether it serves.
func TestRoll_RestoredMachinesWithoutStatus_AreNotDeleted(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	unavailable := []metav1.Condition{{Type: clusterv1.MachineAvailableCondition, Status: metav1.ConditionFalse}}
	for name, test := range map[string]struct {
		change  func(*clusterv1.Machine)
		deletes bool
	}{
		"with an instance": {change: func(m *clusterv1.Machine) {
			m.Spec.ProviderID, m.CreationTimestamp = "x", metav1.NewTime(now.Add(-time.Minute))
		}},
		"with an instance, for five minutes": {change: func(m *clusterv1.Machine) {
			m.Spec.ProviderID, m.CreationTimestamp = "x", metav1.NewTime(now.Add(-machines.SettlingPeriod))
		}, deletes: true},
		"adopted": {change: func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{machines.AdoptedAnnotation: now.Format(time.RFC3339)}
		}},
		"adopted a minute ago, and not available yet": {change: func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{machines.AdoptedAnnotation: now.Add(-time.Minute).Format(time.RFC3339)}
			m.Status.Conditions = unavailable
		}},
		"not available": {change: func(m *clusterv1.Machine) {
			m.Spec.ProviderID, m.Status.Conditions = "x", unavailable
		}, deletes: true},
		"new": {change: func(*clusterv1.Machine) {}, deletes: true},
	} {
		for mode, set := range map[string]func(*settings){
			"rolling":   func(*settings) {},
			"recreate":  func(s *settings) { s.recreate = true },
			"on delete": func(s *settings) { s.strategy = clusterv1.OnDeleteMachineDeploymentStrategyType },
			"paused":    func(s *settings) { s.paused = true },
		} {
			t.Run(name+", "+mode, func(t *testing.T) {
				s := restoredScope(now, test.change)
				set(&s.settings)
				plan := makePlan((&Reconciler{}).look(s))
				g := NewWithT(t)
				if text := unsettledText(s); test.deletes {
					g.Expect(text).To(BeEmpty())
				} else {
					g.Expect(text).To(MatchRegexp(`^\nUntil 2026-01-01T00:0[45]:00Z no outdated Machine .* restored-a, restored-b serve`))
				}
				if test.deletes {
					g.Expect(plan.scale).To(HaveLen(1))
					g.Expect(plan.scale[0].to).To(BeNumerically("<", 2))
				} else {
					g.Expect(plan.scale).To(BeEmpty())
				}
			})
		}
	}
}
