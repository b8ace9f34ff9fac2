package arm

import (
	"net/http"
)

// part is a kind of resource that machines have: interfaces, addresses, disks.
type part struct {
	path, action, resourceType, provider string
	// all returns those that there are, as show has them; find the one of an ID.
	all  func(*Server) []partOf
	used func(*Server, string) error
}

// partOf is one of them.
type partOf struct {
	*named
	show func() shown
}

func (s *Server) parts() []part {
	return []part{
		{
			path: "providers/microsoft.network/networkinterfaces", action: "NetworkInterfaces", resourceType: network + "/networkInterfaces",
			provider: network,
			all: func(s *Server) []partOf {
				return partsOf(s.nics, func(n *networkInterface) partOf { return partOf{&n.named, func() shown { return s.showNIC(n) }} })
			},
			used: func(s *Server, id string) error {
				n := s.nics[id]
				if n.machine == nil && n.reserved != "" && s.clock.Now().Before(n.reservedUntil) {
					return reservedFailure(n)
				}
				if n.machine != nil {
					return fail(http.StatusBadRequest, "NicInUse",
						"Network Interface %s is used by existing resource %s. In order to delete the network interface, "+
							"it must be dissociated from the resource.", n.id, n.machine.id)
				}
				return nil
			},
		},
		{
			path: "providers/microsoft.network/publicipaddresses", action: "PublicIPAddresses", resourceType: network + "/publicIPAddresses",
			provider: network,
			all: func(s *Server) []partOf {
				return partsOf(s.addresses, func(a *publicAddress) partOf { return partOf{&a.named, func() shown { return s.showAddress(a) }} })
			},
			used: func(s *Server, id string) error {
				if a := s.addresses[id]; a.nic != nil {
					return fail(http.StatusBadRequest, "PublicIPAddressCannotBeDeleted",
						"Public IP address %s can not be deleted since it is still allocated to resource %s.", a.id, a.nic.id)
				}
				return nil
			},
		},
		{
			path: "providers/microsoft.compute/disks", action: "Disks", resourceType: compute + "/disks", provider: compute,
			all: func(s *Server) []partOf {
				return partsOf(s.disks, func(d *disk) partOf { return partOf{&d.named, func() shown { return s.showDisk(d) }} })
			},
			used: func(s *Server, id string) error {
				if d := s.disks[id]; d.machine != nil {
					return fail(http.StatusConflict, "OperationNotAllowed", "Disk %s is attached to VM %s.", d.name, d.machine.id)
				}
				return nil
			},
		},
	}
}

func partsOf[T any](all map[string]T, as func(T) partOf) []partOf {
	out := make([]partOf, 0, len(all))
	for _, r := range sorted(all, func(T) bool { return true }, func(r T) int { return as(r).sequence }) {
		out = append(out, as(r))
	}
	return out
}

func (k part) list(s *Server, in *request) (reply, error) {
	var items []partOf
	for _, p := range k.all(s) {
		if p.in(in.subscription, in.group) && s.isListed(p.named) {
			items = append(items, p)
		}
	}
	return page(s, in, items, func(p partOf) int { return p.sequence }, func(p partOf) any { return p.show() })
}

func (k part) find(s *Server, in *request) (partOf, error) {
	for _, p := range k.all(s) {
		if p.in(in.subscription, in.group) && key(p.name) == key(in.name) {
			return p, nil
		}
	}
	return partOf{}, notFound(in, k.resourceType)
}

func (k part) get(s *Server, in *request) (reply, error) {
	p, err := k.find(s, in)
	if err != nil {
		return reply{}, err
	}
	return ok(p.show())
}

// tagsBody is the body of a PATCH, as far as it is simulated.
type tagsBody struct {
	Tags map[string]string `json:"tags"`
}

// patch replaces the tags.
func (k part) patch(s *Server, in *request) (reply, error) {
	var body tagsBody
	if err := in.decode(&body); err != nil {
		return reply{}, err
	}
	p, err := k.find(s, in)
	if err != nil {
		return reply{}, err
	}
	if err := validTags(body.Tags); err != nil {
		return reply{}, err
	}
	p.tags, p.etag = body.Tags, `W/"`+s.ids.uuid()+`"`
	return ok(p.show())
}

// end deletes one that nothing uses; 204 if there is none.
func (k part) end(s *Server, in *request) (reply, error) {
	p, err := k.find(s, in)
	if err != nil {
		return reply{status: http.StatusNoContent}, nil //nolint:nilerr // That is the answer.
	}
	if err := k.used(s, key(p.id)); err != nil {
		return reply{}, err
	}
	operation, headers := s.begin(in, k.provider)
	p.goneAt, p.ending, p.endFailure = s.clock.Now().Add(s.delays.Part), operation, lateFailure(in)
	s.wakeAt(p.goneAt)
	return reply{status: http.StatusAccepted, headers: headers}, nil
}
