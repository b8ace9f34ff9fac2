package ec2

import (
	"slices"

	"millwright.dev/test/clouds/simulator"
)

// deleteVolume deletes a volume that is attached to nothing; see
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteVolume.html.
func deleteVolume(s *Server, _ *simulator.Exchange, p params) (reply, error) {
	id := p["VolumeId"]
	if id == "" {
		return nil, missingParameter("VolumeId")
	}
	if !wellFormed(id, "vol") {
		return nil, fail("InvalidVolumeID.Malformed", `Invalid id: "%s"`, id)
	}
	at := slices.IndexFunc(s.volumes, func(v *volume) bool { return v.id == id })
	switch {
	case at < 0:
		return nil, fail("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
	case p.dryRun():
		return nil, errDryRun
	case s.volumes[at].instance != nil:
		return nil, fail("VolumeInUse", "Volume %s is currently attached to %s", id, s.volumes[at].instance.id)
	}
	s.volumes = slices.Delete(s.volumes, at, at+1)
	return &returnReply{Return: true}, nil
}

// deleteNetworkInterface deletes an interface that is attached to nothing; see
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteNetworkInterface.html.
func deleteNetworkInterface(s *Server, _ *simulator.Exchange, p params) (reply, error) {
	id := p["NetworkInterfaceId"]
	if id == "" {
		return nil, missingParameter("NetworkInterfaceId")
	}
	if !wellFormed(id, "eni") {
		return nil, fail("InvalidNetworkInterfaceId.Malformed", `Invalid id: "%s"`, id)
	}
	at := slices.IndexFunc(s.interfaces, func(n *networkInterface) bool { return n.id == id })
	switch {
	case at < 0:
		return nil, fail("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '%s' does not exist", id)
	case p.dryRun():
		return nil, errDryRun
	case s.interfaces[at].instance != nil:
		return nil, fail("InvalidParameterValue", "Network interface '%s' is currently in use.", id)
	}
	s.addresses.release(s.interfaces[at])
	s.interfaces = slices.Delete(s.interfaces, at, at+1)
	return &returnReply{Return: true}, nil
}
