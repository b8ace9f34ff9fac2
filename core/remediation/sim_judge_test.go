package remediation_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/health"
)

// policies are what Machines are judged by: MachineHealthChecks, or the default policy.
type policies struct {
	checks   []*clusterv1.MachineHealthCheck
	defaults health.Defaults
	all      []health.Policy
}

func newPolicies(s *simulation) policies {
	timeout := func() time.Duration { return time.Duration(1+s.dice.IntN(8)) * time.Minute }
	startup := func() time.Duration { return time.Duration(6+s.dice.IntN(7)) * time.Minute }
	var p policies
	for i := range s.dice.IntN(3) {
		check := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("check", i)}}
		check.Spec.Checks.NodeStartupTimeoutSeconds = ptr.To(int32(startup().Seconds()))
		for _, status := range []string{"Unknown", "False"} {
			check.Spec.Checks.UnhealthyNodeConditions = append(check.Spec.Checks.UnhealthyNodeConditions, clusterv1.UnhealthyNodeCondition{
				Type: "Ready", Status: corev1.ConditionStatus(status), TimeoutSeconds: ptr.To(int32(timeout().Seconds())),
			})
		}
		p.checks = append(p.checks, check)
	}
	p.defaults = health.Defaults{CreationTimeout: startup(), HealthTimeout: timeout()}
	for _, check := range p.checks {
		p.all = append(p.all, health.OfCheck(check))
	}
	if len(p.checks) == 0 {
		p.all = []health.Policy{p.defaults.For(&clusterv1.Machine{}, nil)}
	}
	return p
}

// least is how long a Machine must have been ill, in that way, until it may be called unhealthy.
func (p policies) least(m *simMachine) time.Duration {
	var least []time.Duration
	for _, policy := range p.all {
		ready := policy.NodeStartup
		if m.Status.NodeRef.IsDefined() {
			ready = policy.NodeConditions[0].Timeout
		}
		least = append(least, ready)
	}
	if m.how != notReady && !m.lost.IsZero() {
		return 0
	}
	return slices.Min(least)
}

// histories are what a process has seen of the Machines.
type histories struct {
	cluster *health.History
	of      map[types.UID]*health.History
	first   bool
}

func newHistories() histories {
	return histories{cluster: health.NewHistory(false), of: map[types.UID]*health.History{}, first: true}
}

// judge is a round over all Machines as the cache shows them: it hands those over that it finds unhealthy.
func (s *simulation) judge() {
	h, live := s.histories, !s.histories.first
	now, early := s.now, s.process.freezer.NotBefore(simCluster)
	health.ObserveCluster(health.Facts{Cluster: s.cluster, ClusterHistory: h.cluster, Now: now})
	for _, m := range s.machines {
		if m.seen == nil {
			continue
		}
		history := h.of[m.UID]
		if history == nil {
			history = health.NewHistory(live)
			h.of[m.UID] = history
		}
		facts := health.Facts{
			Machine: m.seen, Cluster: s.cluster, NotBefore: early, History: history, ClusterHistory: h.cluster, Now: now,
		}
		if facts.Unreadable = s.unreadable(); facts.Unreadable == "" && m.seen.Status.NodeRef.IsDefined() {
			facts.Node = m.nodeSeen
		}
		health.Observe(facts, s.policies.all...)
		var found []health.Judgement
		for _, policy := range s.policies.all {
			found = append(found, health.Judgement{Policy: policy.Name, Assessment: health.Judge(policy, facts)})
		}
		if !m.gone && m.seen == m.Machine && m.DeletionTimestamp.IsZero() && s.dice.IntN(20) > 0 {
			s.conclude(m, health.Combine(found))
		}
	}
	s.histories.first = false
}

func (s *simulation) unreadable() string {
	if !s.nodesKnown || s.disconnected() {
		return "no connection"
	}
	return ""
}

// conclude writes what was found.
func (s *simulation) conclude(m *simMachine, found health.Assessment) {
	was := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	switch {
	case found.State == health.Healthy && (was == nil || was.Status != metav1.ConditionTrue):
		m.report(s.stamp(), conditions.True(clusterv1.MachineHealthCheckSucceededCondition, "Simulated", ""))
	case found.State == health.Unhealthy && !m.handed():
		s.checkHandedOver(m, found)
		m.handedAt = s.now
		s.note("%s is unhealthy: %s", m.Name, found.Message)
		m.report(s.stamp(), conditions.False(clusterv1.MachineHealthCheckSucceededCondition, found.Reason, found.Message))
		m.report(s.stamp(), conditions.False(clusterv1.MachineOwnerRemediatedCondition,
			clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, ""))
	}
}
