package arm

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// putMachine creates a virtual machine, or changes its tags.
func putMachine(s *Server, in *request) (reply, error) {
	var doc vmDocument
	if err := fitsModel(in.body); err != nil {
		return reply{}, err
	}
	if err := in.decode(&doc); err != nil {
		return reply{}, err
	}
	existing := s.machines[key(resourceID(in.subscription, in.group, compute, "virtualMachines", in.name))]
	if existing != nil {
		return s.update(in, existing, doc)
	}
	if err := s.validate(in, &doc); err != nil {
		return reply{}, err
	}
	if err := s.quota(&doc); err != nil {
		return reply{}, err
	}
	m := &machine{
		named: s.newNamed(compute, "virtualMachines", in.subscription, in.group, in.name, doc.Tags), document: doc, vmID: s.ids.uuid(),
		state: stateCreating, power: powerStarting, next: powerRunning, cascade: map[string]bool{},
	}
	e := s.exhausted[doc.Properties.HardwareProfile.VMSize+"/"+zoneOf(&doc)]
	if e.Code != "" && !e.Late {
		if s.options.RefusedLaunchesLeaveInterfaces {
			s.attach(m)
			for _, n := range m.nics {
				n.machine = nil
			}
		}
		s.reserve(m)
		return reply{}, fail(http.StatusConflict, e.Code, "%s", e.Message)
	}
	s.attach(m)
	if e.Code != "" {
		m.doom = &errorBody{e.Code, e.Message}
	}
	if failure := lateFailure(in); failure != nil {
		m.doom = failure
	}
	if m.doom == nil {
		s.makeDisks(m)
		s.count(m, 1)
	}
	s.machines[key(m.id)] = m
	operation, headers := s.begin(in, compute)
	m.creating = operation
	body := s.show(m, false)
	m.changeAt = s.clock.Now().Add(s.delays.Create)
	s.wakeAt(m.changeAt)
	return reply{status: http.StatusCreated, headers: headers, body: body}, nil
}

// update is a PUT of an existing machine: its tags may change, its image and data may not.
func (s *Server) update(in *request, m *machine, doc vmDocument) (reply, error) {
	if in.http.Header.Get("If-None-Match") == "*" {
		return reply{}, fail(http.StatusPreconditionFailed, "PreconditionFailed",
			"The condition '*' in the If-None-Match header was not satisfied: the resource '%s' exists.", m.id)
	}
	if match := in.http.Header.Get("If-Match"); match != "" && match != m.etag {
		return reply{}, fail(http.StatusPreconditionFailed, "PreconditionFailed",
			"The condition '%s' in the If-Match header was not satisfied.", match)
	}
	if m.state == stateDeleting {
		return reply{}, fail(http.StatusConflict, "OperationNotAllowed",
			"Operation 'createOrUpdate' is not allowed on VM '%s' since the VM is marked for deletion.", m.name)
	}
	if !slices.Equal(doc.Zones, m.document.Zones) || doc.Properties.OSProfile != nil && doc.Properties.OSProfile.CustomData != "" &&
		doc.Properties.OSProfile.CustomData != m.document.Properties.OSProfile.CustomData {
		return reply{}, fail(http.StatusConflict, "PropertyChangeNotAllowed",
			"Changing property 'zones' or 'osProfile.customData' is not allowed.")
	}
	if doc.Tags != nil { // A PUT of an existing machine changes what it names.
		m.tags = doc.Tags
	}
	m.etag = `W/"` + s.ids.uuid() + `"`
	return ok(s.show(m, false))
}

func zoneOf(doc *vmDocument) string {
	if len(doc.Zones) == 0 {
		return ""
	}
	return doc.Zones[0]
}

// attach creates the interfaces that the launch describes, and takes those that it names.
func (s *Server) attach(m *machine) {
	profile := m.document.Properties.NetworkProfile
	for _, config := range profile.NetworkInterfaceConfigurations {
		ip := config.Properties.IPConfigurations[0].Properties // Subnet and public address are those of the first one.
		// The platform makes the name unique.
		name := config.Name + "-" + s.ids.suffix()
		n := &networkInterface{
			named: s.newNamed(network, "networkInterfaces", m.subscription, m.group, name, config.Tags), document: config, machine: m,
			subnet: s.options.Catalog.subnet(ip.Subnet.ID), mac: s.mac(), primary: config.Properties.Primary,
		}
		n.ips = s.addressesFor(n.subnet, config.Properties.IPConfigurations)
		s.nics[key(n.id)] = n
		m.nics = append(m.nics, n)
		m.cascade[n.id] = config.Properties.DeleteOption == "Delete"
		if public := ip.PublicIPAddressConfiguration; public != nil {
			a := &publicAddress{
				named: s.newNamed(network, "publicIPAddresses", m.subscription, m.group, public.Name+"-"+s.ids.suffix(), public.Tags),
				ip:    s.publicAddress(), nic: n,
			}
			s.addresses[key(a.id)] = a
			n.address, n.deletePublic = a, public.Properties.DeleteOption == "Delete"
		}
	}
	for _, reference := range profile.NetworkInterfaces {
		n := s.nics[key(reference.ID)]
		n.machine, n.primary, n.reserved = m, reference.Properties.Primary || len(profile.NetworkInterfaces) == 1, ""
		m.nics = append(m.nics, n)
		m.cascade[n.id] = reference.Properties.DeleteOption == "Delete"
	}
}

// makeDisks creates the disks. They have the tags of the machine at its creation.
func (s *Server) makeDisks(m *machine) {
	profile := m.document.Properties.StorageProfile
	add := func(name, option string, size int32, sku string, os bool) {
		d := &disk{
			named: s.newNamed(compute, "disks", m.subscription, m.group, name, maps.Clone(m.tags)), zones: m.document.Zones,
			sizeGiB: size, sku: sku, os: os, machine: m,
		}
		s.disks[key(d.id)] = d
		m.disks = append(m.disks, d)
		m.cascade[d.id] = option == "Delete"
	}
	if profile.OSDisk.DiffDiskSettings == nil {
		add(profile.OSDisk.Name, profile.OSDisk.DeleteOption, profile.OSDisk.DiskSizeGB, skuOf(profile.OSDisk.ManagedDisk), true)
	}
	for _, d := range profile.DataDisks {
		add(d.Name, d.DeleteOption, d.DiskSizeGB, skuOf(d.ManagedDisk), false)
	}
}

func skuOf(d *managedDisk) string {
	if d == nil || d.StorageAccountType == "" {
		return "Standard_LRS"
	}
	return d.StorageAccountType
}

// reserve keeps existing interfaces for a machine whose launch is refused: they can be neither deleted nor given to another machine for
// 180 seconds.
func (s *Server) reserve(m *machine) {
	for _, reference := range m.document.Properties.NetworkProfile.NetworkInterfaces {
		n := s.nics[key(reference.ID)]
		n.reserved, n.reservedUntil = m.id, s.clock.Now().Add(reservedFor)
	}
}

// addressesFor are those of the configurations.
func (s *Server) addressesFor(subnet *Subnet, configurations []ipConfig) []ipState {
	var out []ipState
	for _, ip := range configurations {
		state := ipState{name: ip.Name, address: ip.Properties.PrivateIPAddress, version: ip.Properties.PrivateIPAddressVersion}
		state.static = state.address != ""
		switch {
		case state.version == "IPv6":
			s.hosts[subnet.ID+"/6"]++
			state.address = fmt.Sprintf("%s:%x", subnet.IPv6, s.hosts[subnet.ID+"/6"]+3)
		case !state.static:
			state.address = s.privateAddress(subnet)
		}
		if state.version == "" {
			state.version = "IPv4"
		}
		out = append(out, state)
	}
	return out
}

func (s *Server) privateAddress(subnet *Subnet) string {
	for {
		s.hosts[subnet.ID]++
		n := s.hosts[subnet.ID] + 3 // Azure keeps the first ones.
		address := fmt.Sprintf("%s.%d.%d", subnet.Prefix, n/256, n%256)
		if s.holder(subnet, address) == nil {
			return address
		}
	}
}

func (s *Server) publicAddress() string {
	s.hosts["public"]++
	n := s.hosts["public"]
	return fmt.Sprintf("203.0.%d.%d", n/250, n%250+1)
}

func (s *Server) mac() string {
	n := s.ids.random.Uint32()
	return strings.ToUpper(fmt.Sprintf("00-0d-3a-%02x-%02x-%02x", n>>16&0xff, n>>8&0xff, n&0xff))
}
