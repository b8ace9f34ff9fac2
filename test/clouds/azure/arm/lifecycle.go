package arm

import (
	"time"
)

// advance brings everything to the time.
func (s *Server) advance(now time.Time) {
	for _, m := range sorted(s.machines, func(*machine) bool { return true }, func(m *machine) int { return m.sequence }) {
		s.advanceMachine(m, now)
	}
	for _, n := range s.nics {
		if n.isDue(now) && !s.deletionFailed(&n.named) {
			s.removeNIC(n)
		}
	}
	for id, d := range s.disks {
		if d.isDue(now) && !s.deletionFailed(&d.named) {
			delete(s.disks, id)
			s.finish(d.ending, nil)
		}
	}
	for id, a := range s.addresses {
		if a.isDue(now) && !s.deletionFailed(&a.named) {
			delete(s.addresses, id)
			s.finish(a.ending, nil)
		}
	}
}

func (s *Server) advanceMachine(m *machine, now time.Time) {
	if !m.changeAt.IsZero() && !now.Before(m.changeAt) {
		m.changeAt = time.Time{}
		s.settle(m)
	}
	if !m.isDue(now) {
		return
	}
	if failure := m.endFailure; s.deletionFailed(&m.named) {
		m.state, m.failure = stateFailed, failure // It has the power that it had.
		return
	}
	s.remove(m, m.goneAt)
}

// isDue is true once the deletion ends.
func (n *named) isDue(now time.Time) bool { return !n.goneAt.IsZero() && !now.Before(n.goneAt) }

// settle ends a creation or a change of power.
func (s *Server) settle(m *machine) {
	if m.state == stateCreating && m.doom != nil {
		m.state, m.failure, m.power = stateFailed, m.doom, ""
		s.finish(m.creating, m.doom)
		return
	}
	if m.state == stateCreating {
		s.finish(m.creating, nil)
	}
	if m.state == stateCreating || m.state == stateUpdating {
		m.state = stateSucceeded
	}
	before := m.power
	m.power = m.next
	if m.power == powerRunning && before != powerRunning {
		m.bootedAt = s.clock.Now()
		s.power.Start(m.vmID, s.Metadata(m.vmID))
	}
}

// remove deletes a machine with the parts that are deleted with it.
func (s *Server) remove(m *machine, at time.Time) {
	s.free(m, at)
	delete(s.machines, key(m.id))
	s.finish(m.ending, nil)
}

// end begins the deletion of a machine.
func (s *Server) end(m *machine) {
	if m.state == stateDeleting {
		return
	}
	if m.state == stateCreating {
		s.finish(m.creating, &errorBody{"OperationPreempted", "Operation execution has been preempted by a more recent operation."})
	}
	m.state, m.changeAt = stateDeleting, time.Time{}
	m.goneAt = s.clock.Now().Add(s.delays.Delete)
	if m.endFailure == nil {
		s.power.Stop(m.vmID)
	}
	s.wakeAt(m.goneAt)
}

// switchTo begins a change of power.
func (s *Server) switchTo(m *machine, during, after string) {
	if during == powerStopping || during == powerDeallocating {
		s.power.Stop(m.vmID)
	}
	m.power, m.next, m.state = during, after, stateUpdating
	m.changeAt = s.clock.Now().Add(s.delays.Power)
	s.wakeAt(m.changeAt)
}

// wakeAt has the state advanced at the time even without a call: at once if that is now.
func (s *Server) wakeAt(at time.Time) {
	wait := at.Sub(s.clock.Now())
	if wait <= 0 {
		s.advance(s.clock.Now())
		return
	}
	s.clock.AfterFunc(wait, func() { go s.wake() })
}

func (s *Server) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.advance(s.clock.Now())
	}
}
