package compute

import (
	"fmt"
	"slices"
	"time"

	"millwright.dev/test/clouds/simulator"
)

// advance applies every change of state that is due. State is a function of the clock: each call starts with it, and a timer makes machines
// start and stop in time without a call.
func (s *Server) advance(now time.Time) {
	for _, p := range s.projects {
		for _, i := range slices.Clone(p.instances) {
			for !i.nextAt.IsZero() && !now.Before(i.nextAt) {
				s.step(i, i.nextAt)
			}
		}
		p.failOperations(now)
		s.forgetOperations(p, now)
	}
}

// nextChange is when the state changes next by itself; zero if it does not.
func (s *Server) nextChange() (next time.Time) {
	for _, p := range s.projects {
		for _, i := range p.instances {
			if !i.nextAt.IsZero() && (next.IsZero() || i.nextAt.Before(next)) {
				next = i.nextAt
			}
		}
		for _, o := range p.operations {
			if !o.failsAt.IsZero() && (next.IsZero() || o.failsAt.Before(next)) {
				next = o.failsAt
			}
		}
	}
	return next
}

// NextChange is when the state changes next by itself; zero if it does not.
func (s *Server) NextChange() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextChange()
}

// step makes the one change of state that was due at the time.
func (s *Server) step(i *instance, at time.Time) {
	switch i.Status {
	case "":
		i.visible, i.Status, i.CreationTimestamp, i.listedAt = true, "PROVISIONING", timestamp(at), at.Add(s.delays.Listing)
		i.nextAt = at.Add(s.delays.Provisioning)
		i.creation.Status, i.creation.StartTime = opRunning, timestamp(at)
		s.addDisks(i, at)
	case "PROVISIONING":
		if failure := s.shortage(i); failure != nil {
			i.creation.done(at, failure)
			s.remove(i)
			return
		}
		i.Status, i.nextAt = "STAGING", at.Add(s.delays.Staging)
	case "STAGING":
		i.Status, i.nextAt, i.LastStartTimestamp = "RUNNING", time.Time{}, timestamp(at)
		i.creation.done(at, nil)
		i.creation = nil
		i.on = true
		s.power.Start(i.key(), &metadataService{server: s, instance: i})
	case "STOPPING":
		if i.deletion != nil || i.afterStop == "" {
			i.deletion.done(at, nil)
			s.remove(i)
			return
		}
		i.Status, i.nextAt, i.LastStopTimestamp = i.afterStop, time.Time{}, timestamp(at)
	default:
		i.nextAt = time.Time{}
	}
	if !i.nextAt.IsZero() {
		s.wakeAt(i.nextAt)
	}
}

// shortage is why an instance cannot be provisioned; nil if it can. An address is taken if so.
func (s *Server) shortage(i *instance) *Failure {
	if i.failure != nil {
		return i.failure
	}
	for pattern, failure := range s.exhausted {
		if simulator.Wildcard(pattern, i.zone+"/"+base(i.MachineType)) {
			if failure.Message == "" {
				failure.Message = fmt.Sprintf("The zone 'projects/%s/zones/%s' does not have enough resources available to fulfill the request.  "+
					"Try a different zone, or try again later.", i.project.name, i.zone)
			}
			return &failure
		}
	}
	if failure := s.overQuota(i); failure != nil {
		return failure
	}
	return s.assignAddresses(i)
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

// Exhaust lets creations in a zone as a machine type fail late for lack of capacity; both may have the wildcards * and ?.
func (s *Server) Exhaust(zone, machineType string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exhausted[zone+"/"+machineType] = Failure{Code: "ZONE_RESOURCE_POOL_EXHAUSTED"}
}

// Restore ends all that Exhaust has begun.
func (s *Server) Restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.exhausted)
}

// SetUnreachable sets which zones do not answer from now on: lists of all zones leave them out, or fail, as the request says. Also
// regions, such as regions/us-central1, and global, in which there is nothing.
func (s *Server) SetUnreachable(zones ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreachable = zones
}

// SetIncomplete makes lists of all zones incomplete from now on in ways that are not documented: zones that they do not mention, and a
// warning about the list as a whole, such as LIST_OVERHEAD_QUOTA_EXCEED; none if it is empty.
func (s *Server) SetIncomplete(warning string, leftOut ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warning, s.leftOut = warning, leftOut
}

// SetDelays changes the delays for what starts from now on.
func (s *Server) SetDelays(d Delays) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.Forget == 0 {
		d.Forget = s.delays.Forget
	}
	s.delays = d
}

// Delays of what starts from now on.
func (s *Server) Delays() Delays {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delays
}

// Vanish removes an instance with what is attached to it, as if another user had deleted it long ago.
func (s *Server) Vanish(project, zone, name string) error {
	return s.change(project, zone, name, func(i *instance, now time.Time) {
		if i.creation != nil {
			i.creation.done(now, &Failure{Code: "OPERATION_CANCELED_BY_USER"})
		}
		s.remove(i)
	})
}

// Preempt reclaims a spot instance: it stops, and is deleted or stays, as its instanceTerminationAction says. An operation of the system
// reports it.
func (s *Server) Preempt(project, zone, name string) error {
	return s.change(project, zone, name, func(i *instance, now time.Time) {
		o := s.newOperation(i.project, zone, "compute.instances.preempted", "instances/"+name, i.ID, now)
		o.User, o.StatusMessage = "system", "Instance was preempted."
		o.done(now, nil)
		if value(i.Scheduling).InstanceTerminationAction != "DELETE" {
			i.afterStop = "TERMINATED"
		}
		s.stop(i, now)
		s.advance(now)
	})
}

// SetStatus puts an instance into a state, such as SUSPENDED or REPAIRING, in which it stays. It has power only in RUNNING.
func (s *Server) SetStatus(project, zone, name, status string) error {
	return s.change(project, zone, name, func(i *instance, now time.Time) {
		i.Status, i.nextAt = status, time.Time{}
		if status == "TERMINATED" || status == "STOPPED" {
			i.LastStopTimestamp = timestamp(now)
		}
		if status != "RUNNING" {
			s.powerOff(i)
		} else if !i.on {
			i.on = true
			s.power.Start(i.key(), &metadataService{server: s, instance: i})
		}
	})
}

func (s *Server) change(project, zone, name string, f func(*instance, time.Time)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	s.advance(now)
	p := s.projects[project]
	if p == nil || p.instance(zone, name) == nil {
		return notFound("projects/" + project + "/zones/" + zone + "/instances/" + name)
	}
	f(p.instance(zone, name), now)
	return nil
}

// ConsoleOutput is what the machine of an instance has written; empty when it never booted.
func (s *Server) ConsoleOutput(project, zone, name string) string {
	if s.options.Machines == nil {
		return ""
	}
	return s.options.Machines.Console(machineKey(project, zone, name))
}

// Instances are all that a project has, also those that are in no answer yet.
func (s *Server) Instances(project string) (all []Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.clock.Now())
	if p := s.projects[project]; p != nil {
		for _, i := range p.instances {
			all = append(all, i.Instance)
		}
	}
	return all
}

// Disks are all that a project has.
func (s *Server) Disks(project string) (all []Disk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.clock.Now())
	if p := s.projects[project]; p != nil {
		for _, d := range p.disks {
			all = append(all, d.Disk)
		}
	}
	return all
}
