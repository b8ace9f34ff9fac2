package arm

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"millwright.dev/test/clouds/simulator"
)

// Resource is one resource as a test sees it.
type Resource struct {
	ID   string            `json:"id"`
	Kind string            `json:"kind"`
	Name string            `json:"name"`
	Tags map[string]string `json:"tags,omitempty"`
	// UsedBy is the ID of what it belongs to; empty if it belongs to nothing.
	UsedBy string `json:"usedBy,omitempty"`
	// State and Power are of machines, PrivateIP of interfaces.
	State     string `json:"state,omitempty"`
	Power     string `json:"power,omitempty"`
	Size      string `json:"size,omitempty"`
	Zone      string `json:"zone,omitempty"`
	VMID      string `json:"vmID,omitempty"`
	PrivateIP string `json:"privateIP,omitempty"`
}

// Exhaustion is how a size lacks capacity in a zone.
type Exhaustion struct {
	// Code and Message are what launches fail with; an empty code ends the exhaustion.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Late is true if the launch is accepted first.
	Late bool `json:"late,omitempty"`
}

// Exhaust has launches of a size in a zone fail from now on; an empty zone is that of machines without one.
func (s *Server) Exhaust(size, zone string, e Exhaustion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exhausted[size+"/"+zone] = e
}

// Resources are all machines, interfaces, addresses and disks, in the order of their creation.
func (s *Server) Resources() []Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.clock.Now())
	var out []Resource
	for _, m := range sorted(s.machines, func(*machine) bool { return true }, func(m *machine) int { return m.sequence }) {
		r := resourceOf(&m.named, "virtualMachines")
		r.State, r.Power, r.VMID, r.Zone = m.state, m.power, m.vmID, zoneOf(&m.document)
		r.Size = m.document.Properties.HardwareProfile.VMSize
		out = append(out, r)
	}
	for _, n := range sorted(s.nics, func(*networkInterface) bool { return true }, func(n *networkInterface) int { return n.sequence }) {
		r := resourceOf(&n.named, "networkInterfaces")
		if r.PrivateIP = n.private(); n.machine != nil {
			r.UsedBy = n.machine.id
		}
		out = append(out, r)
	}
	for _, a := range sorted(s.addresses, func(*publicAddress) bool { return true }, func(a *publicAddress) int { return a.sequence }) {
		r := resourceOf(&a.named, "publicIPAddresses")
		if a.nic != nil {
			r.UsedBy = a.nic.id
		}
		out = append(out, r)
	}
	for _, d := range sorted(s.disks, func(*disk) bool { return true }, func(d *disk) int { return d.sequence }) {
		r := resourceOf(&d.named, "disks")
		if d.machine != nil {
			r.UsedBy = d.machine.id
		}
		out = append(out, r)
	}
	return out
}

func resourceOf(n *named, kind string) Resource {
	return Resource{ID: n.id, Kind: kind, Name: n.name, Tags: n.tags}
}

// Vanish removes a machine with all that is attached to it, as if another user had deleted it long ago.
func (s *Server) Vanish(id string) error {
	return s.change(id, func(m *machine) { s.power.Stop(m.vmID); s.remove(m, s.clock.Now()); s.advance(s.clock.Now()) })
}

// Evict reclaims a machine as Azure does with Spot Virtual Machines.
func (s *Server) Evict(id string) error { return s.change(id, s.evict) }

// PowerOff is the shutdown of the operating system from within: the machine is stopped, and not deallocated.
func (s *Server) PowerOff(id string) error {
	return s.change(id, func(m *machine) { s.power.Stop(m.vmID); m.power, m.next = powerStopped, powerStopped })
}

// FailUpdate has a later change of a machine fail, such as an extension that a policy adds: its provisioning state is Failed, for a code,
// and its power as it was. An empty code is that of a change that has succeeded again.
func (s *Server) FailUpdate(id, code string) error {
	return s.change(id, func(m *machine) {
		if m.state, m.failure = stateSucceeded, nil; code != "" {
			m.state, m.failure = stateFailed, &errorBody{Code: code}
		}
	})
}

// Silence has the run time status of a machine say nothing, as while its host does not report, or no longer so.
func (s *Server) Silence(id string, silent bool) error {
	return s.change(id, func(m *machine) { m.silent = silent })
}

// MakeByHand has a machine be as if a person had made it: its parts carry no tags. The OS disk, and the interfaces with their addresses,
// stay at its deletion if they are detached, which is Azure's default.
func (s *Server) MakeByHand(id string, diskStays, interfacesStay bool) error {
	return s.change(id, func(m *machine) {
		for _, n := range m.nics {
			n.tags, m.cascade[n.id], n.deletePublic = nil, !interfacesStay, !interfacesStay
			if n.address != nil {
				n.address.tags = nil
			}
		}
		for _, d := range m.disks {
			d.tags, m.cascade[d.id] = nil, !d.os || !diskStays
		}
		if os := m.document.Properties.StorageProfile.OSDisk; diskStays {
			os.DeleteOption = "Detach"
		}
	})
}

// SetTags replaces the tags of a resource, as a user with other rights would.
func (s *Server) SetTags(id string, tags map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.parts() {
		for _, p := range k.all(s) {
			if key(p.id) == key(id) {
				p.tags = tags
				return nil
			}
		}
	}
	if m := s.machines[key(id)]; m != nil {
		m.tags = tags
		return nil
	}
	return fail(http.StatusNotFound, "ResourceNotFound", "there is no resource %s", id)
}

// RemoveGroup removes a resource group with all that is in it.
func (s *Server) RemoveGroup(subscription, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	in := func(id string) bool {
		return strings.HasPrefix(key(id), key("/subscriptions/"+subscription+"/resourceGroups/"+name+"/"))
	}
	for _, m := range s.machines {
		if in(m.id) {
			s.power.Stop(m.vmID)
			s.remove(m, now)
		}
	}
	s.advance(now)
	maps.DeleteFunc(s.nics, func(_ string, n *networkInterface) bool { return in(n.id) })
	maps.DeleteFunc(s.addresses, func(_ string, a *publicAddress) bool { return in(a.id) })
	maps.DeleteFunc(s.disks, func(_ string, d *disk) bool { return in(d.id) })
	groups := &s.options.Catalog.Groups
	*groups = slices.DeleteFunc(*groups, func(g Group) bool {
		return strings.EqualFold(g.Subscription, subscription) && strings.EqualFold(g.Name, name)
	})
}

func (s *Server) change(id string, f func(*machine)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.clock.Now())
	m := s.machines[key(id)]
	if m == nil {
		return fail(http.StatusNotFound, "ResourceNotFound", "there is no machine %s", id)
	}
	f(m)
	return nil
}

// changeBody is a change that the control interface asks for.
type changeBody struct {
	// ID of the machine, or of the resource group.
	ID string `json:"id"`
	// Code is why a change has failed; empty for one that has succeeded.
	Code string `json:"code,omitempty"`
	// Silent is true while the run time status is to say nothing.
	Silent bool `json:"silent,omitempty"`
}

type exhaustBody struct {
	Size string `json:"size"`
	Zone string `json:"zone"`
	Exhaustion
}

// controlRoutes are the control interface.
func (s *Server) controlRoutes() http.Handler {
	c := simulator.NewControl(s.Front)
	c.Get("resources", func() any { return s.Resources() })
	c.Handle("PUT", "delays", func(w http.ResponseWriter, r *http.Request) {
		var d Delays
		if simulator.ReadJSON(w, r, &d) {
			s.SetDelays(d)
			simulator.WriteJSON(w, d)
		}
	})
	c.Handle("PUT", "quotas", func(w http.ResponseWriter, r *http.Request) {
		var quotas map[string]int
		if simulator.ReadJSON(w, r, &quotas) {
			for name, limit := range quotas {
				s.SetQuota(name, limit)
			}
		}
	})
	c.Handle("PUT", "exhausted", func(w http.ResponseWriter, r *http.Request) {
		var e exhaustBody
		if simulator.ReadJSON(w, r, &e) {
			s.Exhaust(e.Size, e.Zone, e.Exhaustion)
		}
	})
	c.Handle("GET", "machines/{vmid}/console", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(s.power.Console(r.PathValue("vmid"))))
	})
	for verb, f := range map[string]func(changeBody) error{
		"vanish": func(b changeBody) error { return s.Vanish(b.ID) }, "evict": func(b changeBody) error { return s.Evict(b.ID) },
		"poweroff":   func(b changeBody) error { return s.PowerOff(b.ID) },
		"failupdate": func(b changeBody) error { return s.FailUpdate(b.ID, b.Code) },
		"silence":    func(b changeBody) error { return s.Silence(b.ID, b.Silent) },
		"removegroup": func(b changeBody) error {
			var in request
			in.takeIn(b.ID)
			s.RemoveGroup(in.subscription, in.group)
			return nil
		},
	} {
		c.Handle("POST", verb, func(w http.ResponseWriter, r *http.Request) {
			var body changeBody
			if !simulator.ReadJSON(w, r, &body) {
				return
			}
			if err := f(body); err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
			}
		})
	}
	return c
}
