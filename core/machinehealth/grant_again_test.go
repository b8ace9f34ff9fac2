package machinehealth

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/health"
)

// TestAQuestionAfterAnotherWasAnswered is as new: a caller that asks does not learn at once that nothing judges the Machine, however long
// ago it was confirmed or asked about.
func TestAQuestionAfterAnotherWasAnswered(t *testing.T) {
	first := health.Confirmation{After: minAsk}
	for name, before := range map[string]func(r *Reconciler, s *round, ask func() health.Confirmation){
		"it was marked for remediation": func(r *Reconciler, s *round, _ func() health.Confirmation) {
			asked := s.machines[0].Status.Conditions
			s.machines[0].Status.Conditions = asked[:len(asked)-1]
			s.confirmed(r, time.Second)
			s.confirmed(r, time.Second)
			s.machines[0].Status.Conditions = asked
			s.now = s.now.Add(time.Hour)
		},
		"it was confirmed": func(r *Reconciler, s *round, ask func() health.Confirmation) {
			ask()
			s.confirmed(r, time.Second)
			s.confirmed(r, time.Second)
			s.now = s.now.Add(time.Hour)
		},
		"it was confirmed, and asked about then": func(r *Reconciler, s *round, ask func() health.Confirmation) {
			ask()
			s.confirmed(r, time.Second)
			s.confirmed(r, time.Second)
			s.now = s.now.Add(confirmedFor - 2*time.Second)
			NewWithT(t).Expect(ask().Done).To(BeTrue())
			s.now = s.now.Add(2 * time.Second)
		},
		"no answer": func(_ *Reconciler, s *round, ask func() health.Confirmation) {
			ask()
			s.now = s.now.Add(time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, ask, _ := granting(&served{cached: nodeIn("1", "False"), live: nodeIn("1", "False")})
			before(r, s, ask)
			NewWithT(t).Expect(ask()).To(Equal(first))
		})
	}
}

// TestWhatIsConfirmedIsAsOldAsTheRead: rounds that go by one read do not make it younger.
func TestWhatIsConfirmedIsAsOldAsTheRead(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), live: nodeIn("1", "False")}
	r, s, ask, _ := granting(to)
	ask()
	s.confirmed(r, time.Second)
	s.confirmed(r, confirmedFor-2*time.Second)
	g.Expect(ask().Done).To(BeTrue())
	s.now = s.now.Add(2 * time.Second)
	g.Expect(ask().Done).To(BeFalse(), "its Node was read a minute ago")
	g.Expect(to.reads).To(Equal(1))
	s.confirmed(r, time.Second)
	g.Expect(to.reads).To(Equal(2))
}

// TestWhoIsNotHandedOver is not confirmed: its owner is not to replace it, whatever its conditions say still.
func TestWhoIsNotHandedOver(t *testing.T) {
	found := conditions.False(clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineHealthCheckUnhealthyNodeReason,
		"MachineHealthCheck workers: Node m0 …")
	for name, test := range map[string]struct {
		change func(*round)
		why    string
	}{
		"the limit is exceeded": {func(s *round) {
			s.checks[0].Spec.Remediation.TriggerIf.UnhealthyInRange = "[2-3]"
		}, "no MachineHealthCheck allows its replacement now"},
		"nothing selects it any more": {func(s *round) { s.machines[0].Labels = nil }, "nothing judges it any more"},
		"its check is paused":         {func(s *round) { s.checks[0].paused = true }, "MachineHealthCheck workers is paused"},
		"it is well":                  {func(s *round) { s.connection.(*served).cached = nodeIn("2", "True") }, "it is healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, s, ask, _ := granting(&served{cached: nodeIn("1", "False"), live: nodeIn("1", "False")})
			conditions.Set(&s.machines[0].Status.Conditions, found, 1, epoch)
			test.change(s)
			ask()
			s.confirmed(r, time.Second)
			s.confirmed(r, time.Second)
			g.Expect(ask().Done).To(BeFalse())
			s.now = s.now.Add(unreadAfter)
			g.Expect(ask().Why).To(ContainSubstring(test.why))
		})
	}
}

// TestWhatAnotherHealthCheckHasFound counts while a policy has no result: a Machine without a Node may be without one forever.
func TestWhatAnotherHealthCheckHasFound(t *testing.T) {
	g := NewWithT(t)
	r, s, ask, _ := granting(&served{})
	s.machines[0].Status.NodeRef.Name = ""
	conditions.Set(&s.machines[0].Status.Conditions,
		conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "ByHand", "it is broken"), 1, epoch)
	ask()
	s.confirmed(r, time.Second)
	g.Expect(ask().Done).To(BeTrue())
}

// TestNothingIsKeptOfAClusterThatIsGone, though no round comes after.
func TestNothingIsKeptOfAClusterThatIsGone(t *testing.T) {
	g := NewWithT(t)
	r, s, ask, _ := granting(&served{})
	ask()
	gone := &clusterv1.Cluster{}
	gone.Namespace, gone.Name = s.key.Namespace, s.key.Name
	r.onCluster().Delete(t.Context(), event.DeleteEvent{Object: gone}, nil)
	g.Expect(r.grants.of).To(BeEmpty())
}
