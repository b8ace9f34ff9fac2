package ec2

import (
	"fmt"
	"slices"
	"time"

	"millwright.dev/test/clouds/aws/simapi"
)

// advance applies every change of state that is due. State is a function of the clock: each call
// starts with it, and a timer makes machines start and stop in time without a call.
func (s *Server) advance(now time.Time) {
	for _, i := range slices.Clone(s.instances) {
		for !i.nextAt.IsZero() && !now.Before(i.nextAt) {
			s.step(i, i.nextAt)
		}
	}
}

// step makes the one change of state that was due at the time.
func (s *Server) step(i *instance, at time.Time) {
	switch {
	case i.state == pending && i.failure != nil:
		i.reason = *i.failure
		i.transition = i.failure.Code
		s.terminate(i, at)
	case i.state == pending:
		i.state, i.nextAt, i.reason = running, time.Time{}, simapi.StateReason{}
		for _, v := range i.volumes {
			v.status, v.attachment = "in-use", "attached"
		}
		for _, n := range i.interfaces {
			n.attachment = "attached"
		}
		s.machines.Start(i.id, s.Metadata(i.id))
	case i.state == shuttingDown:
		s.terminate(i, at)
	case i.state == terminated:
		s.forget(i)
	}
}

// shutDown begins the termination of an instance for the reason.
func (s *Server) shutDown(i *instance, reason simapi.StateReason, now time.Time) {
	i.state, i.reason, i.nextAt = shuttingDown, reason, now.Add(s.delays.ShuttingDown)
	i.transition = fmt.Sprintf("%s (%s)", reason.Message, now.UTC().Format("2006-01-02 15:04:05 GMT"))
	s.machines.Stop(i.id)
	s.wakeAt(i.nextAt)
}

// terminate terminates an instance: volumes and interfaces with DeleteOnTermination are deleted with it.
func (s *Server) terminate(i *instance, at time.Time) {
	i.state, i.terminatedAt, i.nextAt = terminated, at, at.Add(s.delays.Forget)
	s.releaseResources(i)
	s.wakeAt(i.nextAt)
}

// forget removes an instance from every answer.
func (s *Server) forget(i *instance) {
	i.nextAt = time.Time{}
	s.releaseResources(i)
	s.instances = slices.DeleteFunc(s.instances, func(other *instance) bool { return other == i })
}

// releaseResources deletes or detaches what is attached to an instance.
func (s *Server) releaseResources(i *instance) {
	s.volumes = slices.DeleteFunc(s.volumes, func(v *volume) bool {
		return v.instance == i && v.device.deleteOnTermination
	})
	s.interfaces = slices.DeleteFunc(s.interfaces, func(n *networkInterface) bool {
		if n.instance != i || !n.request.deleteOnTermination {
			return false
		}
		s.addresses.release(n)
		return true
	})
	for _, v := range i.volumes {
		v.instance, v.status = nil, "available"
	}
	for _, n := range i.interfaces {
		n.instance = nil
	}
	i.volumes, i.interfaces = nil, nil
}

// wakeAt has the state advanced at the time even without a call.
func (s *Server) wakeAt(at time.Time) {
	s.clock.AfterFunc(at.Sub(s.clock.Now()), func() { go s.wake() })
}

func (s *Server) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.advance(s.clock.Now())
	}
}
