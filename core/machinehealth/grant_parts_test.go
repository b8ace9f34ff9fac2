package machinehealth

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/health"
)

// TestWhatConfirmsAMachine: who judges it, what was found, and whether it may be marked for remediation.
func TestWhatConfirmsAMachine(t *testing.T) {
	found := func(status metav1.ConditionStatus, reason string) func(*round, *target) {
		return func(s *round, _ *target) {
			conditions.Set(&s.machines[0].Status.Conditions,
				metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: status, Reason: reason}, 1, epoch)
		}
	}
	state := func(state health.State) func(*round, *target) {
		return func(_ *round, t *target) { t.State, t.Message = state, "what was found" }
	}
	pausedBy := func(own bool) func(*round, *target) {
		return func(s *round, _ *target) { s.checks[0].paused, s.checks[0].own = true, own }
	}
	abandoned := func(s *round, _ *target) { s.abandoned = s.machines }
	notSelected := func(s *round, _ *target) { s.machines[0].Labels = nil }
	for name, test := range map[string]struct {
		unjudged bool
		changes  []func(*round, *target)
		why      string
	}{
		"unhealthy":                        {},
		"unhealthy, not allowed":           {changes: []func(*round, *target){func(s *round, _ *target) { s.checks[0].allowed = false }}, why: "no MachineHealthCheck allows its replacement now"},
		"healthy":                          {changes: []func(*round, *target){state(health.Healthy)}, why: "it is healthy, but its status does not say so yet"},
		"healthy, found by others":         {changes: []func(*round, *target){state(health.Healthy), found("False", "ByHand")}, why: "it is healthy, but its status does not say so yet"},
		"pending":                          {changes: []func(*round, *target){state(health.Pending)}, why: "what was found"},
		"pending, found by others":         {changes: []func(*round, *target){state(health.Pending), found("False", "ByHand")}},
		"pending, well by others":          {changes: []func(*round, *target){state(health.Pending), found("True", "ByHand")}, why: "what was found"},
		"pending, found by this core":      {changes: []func(*round, *target){state(health.Pending), found("False", clusterv1.MachineHealthCheckUnhealthyNodeReason)}, why: "what was found"},
		"judged by another core":           {unjudged: true},
		"paused":                           {unjudged: true, changes: []func(*round, *target){pausedBy(true)}, why: "MachineHealthCheck h is paused"},
		"paused and abandoned":             {unjudged: true, changes: []func(*round, *target){pausedBy(true), abandoned}, why: "MachineHealthCheck h is paused"},
		"of another core, which is paused": {unjudged: true, changes: []func(*round, *target){pausedBy(false)}},
		"not selected":                     {unjudged: true, changes: []func(*round, *target){notSelected}},
		"not selected any more":            {unjudged: true, changes: []func(*round, *target){notSelected, abandoned}, why: "nothing judges it any more"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, s := confirming(&served{cached: nodeIn("1", "False")})
			s.checks[0].Name = "h"
			s.judge(r)
			s.count()
			of := s.targets[0]
			g.Expect(of.State).To(Equal(health.Unhealthy))
			for _, change := range test.changes {
				change(s, of)
			}
			if test.unjudged {
				of = nil
			}
			at, why := s.confirmedAt(s.machines[0], of)
			g.Expect(why).To(Equal(test.why))
			g.Expect(why != "" || at.Equal(s.now)).To(BeTrue())
		})
	}
}

// TestWhatIsKeptOfMachines that no set asks about: nothing, be they well, external, or confirmed round after round without a read.
func TestWhatIsKeptOfMachines(t *testing.T) {
	for name, change := range map[string]func(*Reconciler, *round){
		"well": func(r *Reconciler, s *round) {
			s.connection.(*served).cached = nodeIn("1", "True")
			s.checks = nil
			r.Options.Defaults = health.Defaults{HealthTimeout: time.Minute}
		},
		"remediated externally": func(_ *Reconciler, s *round) {
			s.checks[0].Spec.Remediation.TemplateRef.Name = "t"
			s.machines[0].Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, s, _, _ := granting(&served{cached: nodeIn("1", "False")})
			s.machines[0].Status.Conditions = s.machines[0].Status.Conditions[:len(s.machines[0].Status.Conditions)-1]
			change(r, s)
			r.collect(s)
			s.judge(r)
			s.count()
			r.confirm(s)
			r.answer(s)
			g.Expect(s.targets).To(HaveLen(1))
			g.Expect(r.grants.of).To(BeEmpty())
		})
	}
	t.Run("confirmed without a read", func(t *testing.T) {
		g := NewWithT(t)
		r, s, ask, _ := granting(&served{cached: nodeIn("1", "False")})
		s.machines[0].Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
		ask()
		for range 12 {
			s.confirmed(r, confirmedFor/4)
		}
		g.Expect(r.grants.of).To(BeEmpty())
	})
}

// TestAQuestionAfterAnAnswer has the same answer as the one before.
func TestAQuestionAfterAnAnswer(t *testing.T) {
	g := NewWithT(t)
	_, _, _, ask := toConfirm(&served{cached: nodeIn("1", "False"), live: nodeIn("1", "False")})
	for range 3 {
		g.Expect(ask().Done).To(BeTrue())
	}
}
