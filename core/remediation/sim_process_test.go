package remediation_test

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/safety/freeze"
)

// stamp is a time that the core writes into an object.
func (s *simulation) stamp() time.Time { return s.now.Truncate(time.Second) }

// process is a core: what ends with it.
type process struct {
	*simulation
	freezer *freeze.Freezer
	// began is when it began, in truth.
	began  time.Time
	notify []func(client.ObjectKey)
}

// Now and Since are a clock.PassiveClock.
func (p *process) Now() time.Time                  { return p.now }
func (p *process) Since(t time.Time) time.Duration { return p.now.Sub(t) }

// Unanswered says since when the target's API server has not answered; a connection notices that with a probe.
func (p *process) Unanswered(client.ObjectKey) (time.Time, string) {
	if !p.disconnected() {
		return time.Time{}, ""
	}
	return p.targetDown, "connection refused"
}

func (p *process) OnConnectivity(f func(client.ObjectKey)) { p.notify = append(p.notify, f) }

// disconnected reports whether the core knows that the target's API server does not answer.
func (s *simulation) disconnected() bool {
	return !s.targetDown.IsZero() && s.now.Sub(s.targetDown) >= simProbe
}

// start begins a process. The one before has died since rest: its slots and what it has seen are gone.
func (s *simulation) start(rest time.Duration) {
	s.note("the core dies for %s", rest)
	for end := s.now.Add(rest); s.now.Before(end); {
		s.now = s.now.Add(s.step)
		s.cloud()
	}
	p := &process{simulation: s, began: s.now}
	p.freezer = freeze.New(s.freezing, p, p)
	s.process, s.slots, s.histories = p, newSlots(), newHistories()
	s.nodesKnown = s.targetDown.IsZero()
	for _, m := range s.machines {
		if !s.nodesKnown {
			m.nodeSeen = nil
		}
	}
}

// report writes the condition of the Cluster, as its controller does.
func (s *simulation) report() {
	state := s.process.freezer.Frozen(simCluster)
	condition := conditions.True(clusterv1.MachineHealthCheckRemediationAllowedCondition, "Allowed", "")
	if state.Active() {
		condition = conditions.False(clusterv1.MachineHealthCheckRemediationAllowedCondition, state.Reason, state.Message)
	}
	cluster := s.cluster.DeepCopy()
	conditions.Set(&cluster.Status.Conditions, condition, 1, s.stamp())
	s.cluster = cluster
}

// connected takes in that the connection to the target cluster has changed.
func (s *simulation) connected() {
	for _, notify := range s.process.notify {
		notify(simCluster)
	}
	if s.targetDown.IsZero() {
		s.nodesKnown = true
		for _, m := range s.machines {
			// A connection that can be used has read all Nodes.
			m.nodeSeen = m.node
		}
	}
}

// forbidden is why nothing may be replaced now, as the simulation knows it and not as the core does; "" when it may.
func (s *simulation) forbidden() string {
	switch {
	case !s.targetDown.IsZero() && s.now.Sub(s.targetDown) >= s.freezing.Timeout+simProbe:
		return "the target's API server is away"
	case !s.targetBack.IsZero() && s.now.Before(s.targetBack.Add(s.freezing.Grace)):
		return "the target's API server is back a moment ago"
	}
	return ""
}

// mayDie reports whether the core may die now. One that starts just before the end of an outage, or in the grace after it, does not know
// of the outage; the limits alone bound what it replaces.
func (s *simulation) mayDie() bool {
	return s.targetUntil.IsZero() || s.now.Before(s.targetUntil.Add(-3*time.Minute)) || s.now.After(s.targetUntil.Add(s.freezing.Grace+s.step))
}
