package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
	"millwright.dev/test/coretest/workers"
)

// TestStalledRolloutReportsWhatItWaitsFor lets a rollout hang: one condition names the Machine and what it waits for,
// nothing is written while nothing changes, and the report ends with the standstill.
func TestStalledRolloutReportsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	w.machines.setBroken("b")
	w.update(toTemplateB)
	const kind = clusterv1.MachineDeploymentRollingOutCondition
	w.Eventually(w.reports(kind, clusterv1.MachineDeploymentRollingOutReason, "1 of 2 replicas are up to date"))
	w.update(shortTimeout)
	w.Eventually(w.reports(kind, ProgressDeadlineExceededReason, "InfrastructureReady is False: "+outOfStock))
	for _, machine := range w.Machines() {
		if machine.Labels[clusterv1.MachineDeploymentUniqueLabel] == w.currentSet().Labels[clusterv1.MachineDeploymentUniqueLabel] {
			w.Eventually(w.reports(kind, ProgressDeadlineExceededReason, "Machine "+machine.Name))
		}
	}
	version := func() string { return w.current().ResourceVersion }
	w.G.Eventually(func(g Gomega) {
		now := version()
		g.Consistently(version).WithTimeout(2 * time.Second).Should(Equal(now))
	}).WithTimeout(workers.Timeout).Should(Succeed())

	w.machines.setBroken("")
	w.Eventually(w.settled(2, "b", "2"))
	w.Eventually(w.reports(kind, clusterv1.MachineDeploymentNotRollingOutReason, ""))
}

// currentSet is the set with the highest revision.
func (w *world) currentSet() *clusterv1.MachineSet {
	var sets []*clusterv1.MachineSet
	for _, set := range w.allSets() {
		sets = append(sets, &set)
	}
	byRevision(sets)
	return sets[0]
}

// member is a Machine of a set, created some time before start.
func member(name string, age time.Duration, reported ...metav1.Condition) *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(start.Add(-age))}}
	machine.Status.Conditions = reported
	return machine
}

func going5m(machine *clusterv1.Machine) *clusterv1.Machine {
	machine.DeletionTimestamp = ptr.To(metav1.NewTime(start.Add(-5 * time.Minute)))
	return machine
}

func since(age time.Duration, reported metav1.Condition) metav1.Condition {
	reported.LastTransitionTime = metav1.NewTime(start.Add(-age))
	return reported
}

// begin returns the scope of a reconcile that has done nothing yet.
func begin(deployment *clusterv1.MachineDeployment) *scope {
	return (&Reconciler{Clock: clocktesting.NewFakePassiveClock(start)}).newScope(deployment)
}

// rollout is a scope in the middle of a rollout that began half an hour before start.
func rollout(outdated, current []*clusterv1.Machine, change ...func(*scope)) *scope {
	old, fresh := setOf("old", "u", int32(len(outdated)), 3*time.Hour, "1"), setOf("fresh", "t", int32(len(current)), 30*time.Minute, "2")
	s := begin(valid())
	s.sets, s.current, s.read = []*clusterv1.MachineSet{old, fresh}, fresh, true
	s.machines = map[types.UID][]*clusterv1.Machine{"old": outdated, "fresh": current}
	s.settings = settings{replicas: 3, maxSurge: 1}
	s.Original.Status.Conditions = []metav1.Condition{
		since(30*time.Minute, conditions.True(clusterv1.MachineDeploymentRollingOutCondition, "RollingOut", "")),
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func TestReportedProgress(t *testing.T) {
	up := conditions.True(clusterv1.MachineAvailableCondition, "Available", "")
	down := conditions.False(clusterv1.MachineAvailableCondition, "NotAvailable", "")
	machines := func(m ...*clusterv1.Machine) []*clusterv1.Machine { return m }
	recorded := func(set string, reached int) func(*scope) {
		return func(s *scope) {
			s.deployment.Annotations = map[string]string{ProgressAnnotation: progress{
				MachineSet: set, Reached: reached, Since: metav1.NewTime(start.Add(-9 * time.Minute)),
			}.text()}
		}
	}
	tests := map[string]struct {
		scope *scope
		ago   time.Duration
		known bool
	}{
		"its beginning":                          {rollout(nil, nil), 30 * time.Minute, true},
		"it has not been reported to have begun": {rollout(nil, nil, func(s *scope) { s.Original.Status.Conditions = nil }), 0, false},
		"a new set":                              {rollout(nil, nil, func(s *scope) { s.current.CreationTimestamp = metav1.NewTime(start.Add(-time.Minute)) }), 30 * time.Minute, true},
		"a new Machine":                          {rollout(nil, machines(member("m", 7*time.Minute))), 30 * time.Minute, true},
		"a new Machine became available":         {rollout(nil, machines(member("m", 7*time.Minute, since(2*time.Minute, up)))), 2 * time.Minute, true},
		"a new Machine became unavailable":       {rollout(nil, machines(member("m", 7*time.Minute, since(2*time.Minute, down)))), 30 * time.Minute, true},
		"an outdated Machine is available":       {rollout(machines(member("m", time.Hour, since(time.Minute, up))), nil), 30 * time.Minute, true},
		"a record of less":                       {rollout(nil, machines(member("m", 7*time.Minute, since(2*time.Minute, up))), recorded("fresh", 0)), 2 * time.Minute, true},
		"a record, and a Machine of before it": {
			rollout(nil, machines(member("m", time.Hour, since(20*time.Minute, up))), recorded("fresh", 0)), 9 * time.Minute, true,
		},
		"a clock that is ahead made it available": {rollout(nil, machines(member("m", time.Hour, since(-time.Minute, up)))), 30 * time.Minute, true},
		"a Machine is available again":            {rollout(nil, machines(member("m", 7*time.Minute, since(2*time.Minute, up))), recorded("fresh", 1)), 9 * time.Minute, true},
		"a record of another set":                 {rollout(nil, nil, recorded("old", 1)), 30 * time.Minute, true},
		"OnDelete waits for a person": {rollout(nil, nil, func(s *scope) {
			s.settings.strategy = clusterv1.OnDeleteMachineDeploymentStrategyType
		}), 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			observed, known := observedProgress(test.scope)
			g.Expect(observed.Since.Time).To(BeTemporally("==", start.Add(-test.ago)))
			g.Expect(known).To(Equal(test.known))
		})
	}
}

// watched judges the progress as a process does that was just started.
func watched(t *testing.T, s *scope) outcome.Outcome {
	t.Helper()
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(workers.Scheme()).WithObjects(s.deployment.DeepCopy()).Build()}
	r.Clock = clocktesting.NewFakePassiveClock(s.Now)
	s.Original.Annotations = s.deployment.Annotations
	stored := s.Original.DeepCopy()
	NewWithT(t).Expect(r.Client.Get(t.Context(), s.Key(), stored)).To(Succeed())
	s.Original.ResourceVersion = stored.ResourceVersion
	s.Base = r.newScope(s.Original).Base
	end := r.watchProgress(t.Context(), s)
	NewWithT(t).Expect(end.Err()).NotTo(HaveOccurred())
	return end
}

func TestStall(t *testing.T) {
	machines := func(m ...*clusterv1.Machine) []*clusterv1.Machine { return m }
	annotated := func(key, value string) func(*scope) {
		return func(s *scope) { s.deployment.Annotations = map[string]string{key: value} }
	}
	waits := conditions.Unknown(clusterv1.MachineNodeReadyCondition, "NodeDoesNotExist", "no Node yet")
	outdated := machines(member("o", time.Hour))
	began := func(age time.Duration, outdated []*clusterv1.Machine, change ...func(*scope)) *scope {
		return rollout(outdated, machines(member("n", time.Minute, waits)), append(change, func(s *scope) {
			s.Original.Status.Conditions[0].LastTransitionTime = metav1.NewTime(start.Add(-age))
		})...)
	}
	// A Recreate rollout, or one with maxUnavailable 100 %, has no outdated Machine left.
	never := func(s *scope) { s.Original.Status.Conditions = nil }
	tests := map[string]struct {
		scope *scope
		again time.Duration
		says  []string
	}{
		"before the default deadline": {began(4*time.Minute, outdated), 6 * time.Minute, nil},
		"after the default deadline":  {began(11*time.Minute, outdated), 0, []string{"Machine n: NodeReady is Unknown: no Node yet"}},
		"before its own deadline":     {began(11*time.Minute, outdated, annotated(ProgressDeadlineAnnotation, "20m")), 9 * time.Minute, nil},
		"after its own deadline":      {began(3*time.Minute, outdated, annotated(ProgressDeadlineAnnotation, "2m")), 0, []string{"no Node yet"}},
		"no deadline":                 {began(29*time.Minute, outdated, annotated(ProgressDeadlineAnnotation, "0")), 0, nil},
		"a deadline that is none":     {began(11*time.Minute, outdated, annotated(ProgressDeadlineAnnotation, "soon")), 0, []string{"no Node yet"}},
		"paused":                      {began(29*time.Minute, outdated, func(s *scope) { s.settings.paused = true }), 0, nil},
		"paused until now, with its Cluster": {
			began(29*time.Minute, outdated, func(s *scope) {
				s.Original.Status.Conditions = append(s.Original.Status.Conditions, conditions.True(clusterv1.PausedCondition, "Paused", ""))
			}), 10 * time.Minute, nil,
		},
		"nothing is outdated any more":      {began(11*time.Minute, nil), 0, []string{"1 of 3 replicas are up to date, 0 available", "no Node yet"}},
		"a new deployment that has time":    {rollout(nil, machines(member("n", time.Minute)), never), 10 * time.Minute, nil},
		"nothing is missing":                {rollout(nil, servingAll(3)), 0, nil},
		"one of a complete rollout is gone": {rollout(nil, servingAll(2), func(s *scope) { s.Original.Status.Conditions[0].Status = metav1.ConditionFalse }), 10 * time.Minute, nil},
		"a drain that does not end": {
			rollout(
				machines(
					going5m(
						member(
							"o",
							time.Hour,
							conditions.True(clusterv1.MachineDeletingCondition, "DrainingNode", "a PodDisruptionBudget does not allow it"),
						),
					),
				),
				nil,
				annotated(ProgressDeadlineAnnotation, "4m"),
			),
			10 * time.Minute,
			[]string{"Machine o: Deleting is True: a PodDisruptionBudget does not allow it"},
		},
		"a set that is blocked": {
			rollout(outdated, nil, func(s *scope) {
				s.current.Status.Conditions = []metav1.Condition{
					conditions.True(clusterv1.MachineSetScalingUpCondition, "ScalingUpBlocked", "the template is missing"),
				}
				s.current.Spec.Replicas = ptr.To[int32](1)
			}), 0, []string{"MachineSet fresh: the template is missing"},
		},
		"a set that does nothing": {
			rollout(outdated, nil, func(s *scope) { s.current.Spec.Replicas = ptr.To[int32](1) }),
			0, []string{"MachineSet fresh: 0 Machines exist, 1 are desired"},
		},
		"OnDelete waits for a person": {rollout(servingAll(3), nil, func(s *scope) {
			s.settings.strategy = clusterv1.OnDeleteMachineDeploymentStrategyType
		}), 0, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := test.scope
			s.deployment.Spec.Replicas = ptr.To[int32](3)
			g.Expect(watched(t, s).After()).To(BeNumerically("~", test.again, time.Second))
			reported := rollingOutCondition(s, nil)
			if test.says == nil {
				g.Expect(s.stalled).To(BeFalse())
				g.Expect(reported.Reason).NotTo(Equal(ProgressDeadlineExceededReason))
				return
			}
			g.Expect(reported.Reason).To(Equal(ProgressDeadlineExceededReason))
			g.Expect(string(reported.Status)).To(Equal("True"), "it is still rolling out")
			for _, part := range test.says {
				g.Expect(reported.Message).To(ContainSubstring(part))
			}
		})
	}
}

func TestSlowDeletionsAreNamed(t *testing.T) {
	g := NewWithT(t)
	slow := member("slow", time.Hour, conditions.True(clusterv1.MachineDeletingCondition, "DrainingNode", "pod p stays"))
	slow.DeletionTimestamp = ptr.To(metav1.NewTime(start.Add(-15 * time.Minute)))
	s := rollout([]*clusterv1.Machine{slow, going5m(member("quick", time.Hour))}, nil)
	g.Expect((&Reconciler{}).requeueAfterSlowDeletion(t.Context(), s).After()).
		To(Equal(10*time.Minute), "when quick will have been going for so long")
	g.Expect(machines.SlowDeletions(s.allMachines(), start)).
		To(And(ContainSubstring("Machine slow: pod p stays"), Not(ContainSubstring("quick"))))
}
