package remediation_test

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	. "millwright.dev/test/coretest/builder"
)

func intOrString(text string) intstr.IntOrString { return intstr.Parse(text) }

// serves reports whether the Node of a Machine is fine in truth.
func (s *simulation) serves(m *simMachine) bool {
	return !m.upAt.IsZero() && !s.now.Before(m.upAt) && !s.isLost(m)
}

func (s *simulation) isLost(m *simMachine) bool {
	return !m.lost.IsZero() && !s.now.Before(m.lost) && (m.back.IsZero() || s.now.Before(m.back))
}

// cloud starts and ends instances, and Nodes report.
func (s *simulation) cloud() {
	for _, m := range s.machines {
		if m.gone {
			continue
		}
		switch {
		case !m.DeletionTimestamp.IsZero():
			if m.goneAt.IsZero() {
				m.goneAt = s.now.Add(simDrain)
			}
			if !s.cloudDown && !s.now.Before(m.goneAt) {
				s.remove(m)
				continue
			}
		case m.upAt.IsZero() && !s.cloudDown && !s.broken && !m.dead && m.zone != s.zoneDown && !s.isLost(m):
			m.upAt = s.now.Add(simBoot + time.Duration(s.dice.IntN(60))*time.Second)
		}
		if !m.upAt.IsZero() && !s.targetDown.IsZero() && !m.upAt.Before(s.now) {
			// It tries until it can join.
			m.upAt = s.now.Add(s.step + time.Duration(s.dice.Int64N(int64(simReport-s.step))))
		}
		switch {
		case s.serves(m):
			m.ill = time.Time{}
			if m.served.IsZero() {
				m.served = s.now
			}
		case m.ill.IsZero():
			m.ill = s.now
		}
		if s.targetDown.IsZero() {
			s.nodeReports(m)
		}
	}
}

// remove ends a Machine. What was condemned is owed from now on.
func (s *simulation) remove(m *simMachine) {
	m.gone, m.node = true, nil
	s.note("%s is gone", m.Name)
	if !m.condemned.IsZero() {
		m.set.group.debts = append(m.set.group.debts, m)
	}
}

// nodeReports brings the Node of a Machine to what the API server of the target has of it.
func (s *simulation) nodeReports(m *simMachine) {
	status := corev1.ConditionTrue
	lost := s.isLost(m)
	switch {
	case m.upAt.IsZero() || s.now.Before(m.upAt):
		return
	case lost && m.how == nodeDeleted:
		m.node = nil
		return
	case lost && s.now.Sub(m.lost) >= simMissed:
		status = corev1.ConditionUnknown
	case !s.targetBack.IsZero() && s.now.Sub(s.targetBack) < simReport && int(m.upAt.Unix()+s.targetBack.Unix())%3 == 0 &&
		m.upAt.Before(s.targetBack):
		// It is called so for a while after its API server was away: it could not report.
		status = corev1.ConditionUnknown
	case lost && m.node != nil:
		return
	}
	if m.node != nil && m.node.Status.Conditions[0].Status == status {
		return
	}
	m.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	m.node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(s.now.Truncate(time.Second))},
	}
}

// link is what the Machine controller does: it links a Machine with its Node, and says whether it is available.
func (s *simulation) link(m *simMachine) {
	if m.gone {
		return
	}
	if s.nodesKnown && s.targetDown.IsZero() {
		m.nodeSeen = m.node
	}
	if !m.DeletionTimestamp.IsZero() {
		return
	}
	if m.nodeSeen != nil && !m.Status.NodeRef.IsDefined() {
		m.change(func(c *clusterv1.Machine) { c.Status.NodeRef.Name = m.nodeSeen.Name })
	}
	fine := !s.disconnected() && m.nodeSeen != nil && m.nodeSeen.Status.Conditions[0].Status == corev1.ConditionTrue
	if fine != m.isTrue(clusterv1.MachineAvailableCondition) {
		condition := conditions.False(clusterv1.MachineAvailableCondition, "NotAvailable", "")
		if fine {
			condition = conditions.True(clusterv1.MachineAvailableCondition, "Available", "")
		}
		m.report(s.stamp(), condition)
	}
	if fine && m.available.IsZero() {
		m.available = s.now
		s.note("%s is available", m.Name)
	}
	vanished := s.isLost(m) && m.how == instanceVanished && !s.cloudDown
	if vanished && meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition) == nil {
		m.report(s.stamp(), conditions.False(clusterv1.MachineInfrastructureReadyCondition, "InstanceVanished", ""))
	}
}

// stalls are until when each watch shows nothing new: those of sets and of Machines are not of one age.
type stalls struct {
	sets, machines time.Time
	// sum is for how long any of them did in all.
	sum time.Duration
}

// stall has a watch hang now and then, for seconds or for hours. What it shows meanwhile is what there was before.
func (s *simulation) stall() {
	for _, until := range []*time.Time{&s.stalled.sets, &s.stalled.machines} {
		if s.now.After(*until) && s.dice.IntN(150) == 0 {
			*until = s.now.Add(pick(s, time.Minute, 3*time.Minute, 20*time.Minute, 2*time.Hour) * time.Duration(1+s.dice.IntN(100)) / 100)
			s.note("a watch hangs until %s", until.Sub(Epoch))
		}
	}
	if s.now.Before(s.stalled.sets) || s.now.Before(s.stalled.machines) {
		s.stalled.sum += s.step
	}
}

// catchUp has the caches take over what is there, a share of it; the rest is two steps late at most, unless the watch hangs.
func (s *simulation) catchUp(share float64) {
	shows := func(behind *bool, same bool) bool {
		*behind = !same && !*behind && s.dice.Float64() >= share
		return !*behind
	}
	for _, group := range s.groups {
		if s.now.Before(s.stalled.sets) {
			break
		}
		for _, set := range group.sets {
			if shows(&set.behind, set.seen == set.MachineSet) {
				set.seen = set.MachineSet
			}
		}
	}
	if s.now.Before(s.stalled.machines) {
		return
	}
	ended := false
	for _, m := range s.machines {
		if m.seen == m.Machine && !m.gone {
			m.behind = false
			continue
		}
		if shows(&m.behind, false) {
			if m.seen = m.Machine; m.gone {
				m.seen, ended = nil, true
			}
		}
	}
	if ended {
		s.machines = slices.DeleteFunc(s.machines, func(m *simMachine) bool { return m.gone && m.seen == nil })
	}
}
