package ec2

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/clouds/simulator"
)

// tokenKey is what a client token is unique in. RunInstances is idempotent in a zone, since a subnet
// names one: the same token in another zone launches again. See "RunInstances idempotency" in
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html.
type tokenKey struct{ token, zone string }

// reservation is one successful launch, remembered forever by its client token.
type reservation struct {
	id          string
	fingerprint string
	instances   []*instance
}

// runInstances launches instances, or repeats the answer of a launch with the same client token.
func runInstances(s *Server, c *simulator.Exchange, p params) (reply, error) {
	l, err := s.readLaunch(p)
	if err != nil {
		return nil, err
	}
	mark := fingerprint(p)
	if known, ok := s.tokens[tokenKey{l.token, l.zone.AvailabilityZone}]; ok && l.token != "" {
		return s.repeatLaunch(c, known, mark)
	}
	if p.dryRun() {
		return nil, errDryRun
	}
	r := &reservation{id: s.ids.next("r"), fingerprint: mark}
	for index := range l.max {
		i, err := s.launchOne(l, r.id, index)
		if err != nil && index < l.min {
			s.undo(r.instances)
			return nil, err
		}
		if err != nil {
			break
		}
		if failure := c.LaunchFailure(); failure != nil {
			i.failure = launchFailure(*failure)
		}
		r.instances = append(r.instances, i)
		c.AddResources(i.id)
	}
	if l.token != "" {
		s.tokens[tokenKey{l.token, l.zone.AvailabilityZone}] = r
	}
	s.wakeAt(s.clock.Now().Add(s.delays.Pending))
	// The answer is taken before anything can change: a launch is always answered as pending.
	answer := &runInstancesReply{xmlReservation: s.describeReservation(r.id, r.instances)}
	s.advance(s.clock.Now())
	return answer, nil
}

// launchFailure fills in the message.
func launchFailure(f simapi.StateReason) *simapi.StateReason {
	if f.Message == "" {
		f.Message = f.Code + ": Client error on launch"
	}
	return &f
}

// repeatLaunch answers a known client token. The documentation on idempotency has a retry succeed
// with the current state; the list of error codes has IdempotentInstanceTerminated for a token whose
// instance has been terminated. Both are kept: the first while the instance is described, the second
// once it is no longer.
func (s *Server) repeatLaunch(c *simulator.Exchange, known *reservation, mark string) (reply, error) {
	if known.fingerprint != mark {
		return nil, fail("IdempotentParameterMismatch",
			"Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
	}
	for _, i := range known.instances {
		c.AddResources(i.id)
		if !slices.Contains(s.instances, i) {
			return nil, fail("IdempotentInstanceTerminated",
				"The client token belongs to the instance '%s', which has been terminated", i.id)
		}
	}
	return &runInstancesReply{xmlReservation: s.describeReservation(known.id, known.instances)}, nil
}

// fingerprint identifies the parameters of a request, but for those that say nothing about what to
// launch.
func fingerprint(p params) string {
	hash := sha256.New()
	for _, k := range slices.Sorted(maps.Keys(p)) {
		switch k {
		case "Action", "Version", "ClientToken", "DryRun":
			continue
		}
		_, _ = fmt.Fprintf(hash, "%q=%q\n", k, p[k])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// launchOne creates an instance with its volumes and network interfaces.
func (s *Server) launchOne(l *launch, reservationID string, index int) (*instance, error) {
	if err := s.checkRoom(l); err != nil {
		return nil, err
	}
	now := s.clock.Now()
	i := &instance{
		seq: s.sequence(), id: s.ids.next("i"), reservationID: reservationID, launchIndex: index, launch: l,
		tags: copyTags(l.tags["instance"]), launchTime: now, visibleAt: now.Add(s.delays.Consistency),
		protected: l.noTermination, state: pending, nextAt: now.Add(s.delays.Pending),
		reason: simapi.StateReason{Code: pending, Message: pending},
	}
	if l.spot {
		i.spotRequestID = "sir-" + s.ids.next("x")[3:11]
	}
	if s.volumesOverQuota(l) {
		i.failure = launchFailure(simapi.StateReason{Code: "Client.VolumeLimitExceeded",
			Message: "Client.VolumeLimitExceeded: Volume limit exceeded"})
	}
	if l.brokenKMSKey {
		i.failure = launchFailure(simapi.StateReason{Code: "Client.InternalError"})
	}
	for _, r := range l.interfaces {
		n, err := s.newInterface(i, r)
		if err != nil {
			for _, made := range i.interfaces {
				s.addresses.release(made)
			}
			return nil, err
		}
		i.interfaces = append(i.interfaces, n)
	}
	for _, d := range l.devices {
		i.volumes = append(i.volumes, &volume{
			seq: s.sequence(), id: s.ids.next("vol"), device: d, instance: i, zone: l.zone, status: "creating",
			attachment: "attaching", createTime: now, attachTime: now, tags: copyTags(l.tags["volume"]),
		})
	}
	s.instances = append(s.instances, i)
	s.interfaces = append(s.interfaces, i.interfaces...)
	s.volumes = append(s.volumes, i.volumes...)
	return i, nil
}

func (s *Server) newInterface(i *instance, r interfaceRequest) (*networkInterface, error) {
	address := ""
	if r.kind != efaOnly {
		var err error
		if address, err = s.addresses.take(r.subnet, r.privateIP); err != nil {
			return nil, err
		}
	}
	n := &networkInterface{
		seq: s.sequence(), id: s.ids.next("eni"), attachmentID: s.ids.next("eni-attach"), request: r, instance: i,
		subnet: r.subnet, groups: r.groups, privateIP: address, mac: s.ids.mac(), attachment: "attaching",
		attachTime: i.launchTime, tags: copyTags(i.launch.tags["network-interface"]),
	}
	if r.public {
		n.publicIP = s.addresses.takePublic()
	}
	s.addresses.takeIPv6(n)
	return n, nil
}

// undo takes back the instances of a launch that fell short of its minimum.
func (s *Server) undo(list []*instance) {
	for _, i := range list {
		for _, v := range i.volumes {
			v.device.deleteOnTermination = true
		}
		for _, n := range i.interfaces {
			n.request.deleteOnTermination = true
		}
		s.forget(i)
	}
}

func (s *Server) sequence() int {
	s.seq++
	return s.seq
}

func copyTags(tags map[string]string) map[string]string {
	out := make(map[string]string, len(tags))
	maps.Copy(out, tags)
	return out
}
