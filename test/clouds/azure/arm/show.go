package arm

import (
	"maps"
	"strings"
)

// shown is a resource as an answer has it.
type shown struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Type       string            `json:"type"`
	Location   string            `json:"location"`
	Tags       map[string]string `json:"tags,omitempty"`
	Zones      []string          `json:"zones,omitempty"`
	Etag       string            `json:"etag,omitempty"`
	ManagedBy  string            `json:"managedBy,omitempty"`
	SKU        any               `json:"sku,omitempty"`
	Plan       *plan             `json:"plan,omitempty"`
	Identity   *vmIdentity       `json:"identity,omitempty"`
	Properties any               `json:"properties"`
}

func (s *Server) shown(n *named, resourceType string, properties any) shown {
	return shown{
		ID: n.id, Name: n.name, Type: resourceType, Location: s.options.Catalog.Location, Tags: maps.Clone(n.tags), Etag: n.etag,
		Properties: properties,
	}
}

// show is a machine as its GET has it: custom data, user data and passwords are never in an answer.
func (s *Server) show(m *machine, withView bool) shown {
	p := m.document.Properties
	profile := *p.OSProfile
	profile.CustomData, profile.AdminPassword = "", ""
	p.OSProfile, p.UserData = &profile, ""
	p.VMID, p.ProvisioningState, p.TimeCreated = m.vmID, m.state, stamp(m.created)
	references := networkProfile{}
	for _, n := range m.nics {
		option := "Detach"
		if m.cascade[n.id] {
			option = "Delete"
		}
		references.NetworkInterfaces = append(references.NetworkInterfaces, interfaceReference{n.id, interfaceReferenceState{Primary: n.primary,
			DeleteOption: option}})
	}
	p.NetworkProfile = &references
	storage := *p.StorageProfile
	os := *storage.OSDisk
	storage.OSDisk = &os
	for _, d := range m.disks {
		if d.os {
			os.ManagedDisk = &managedDisk{ID: d.id, StorageAccountType: d.sku}
		}
	}
	p.StorageProfile = &storage
	if withView {
		p.InstanceView = s.view(m)
	}
	out := s.shown(&m.named, compute+"/virtualMachines", p)
	out.Zones, out.Plan, out.Identity = m.document.Zones, m.document.Plan, m.document.Identity
	return out
}

// view is the run time status.
func (s *Server) view(m *machine) *instanceView {
	if m.silent {
		return &instanceView{Statuses: []instanceStatus{}}
	}
	code := "ProvisioningState/" + strings.ToLower(m.state)
	status := instanceStatus{Code: code, Level: "Info", DisplayStatus: "Provisioning " + strings.ToLower(m.state), Time: stamp(s.clock.Now())}
	if m.failure != nil {
		status.Code, status.Level, status.Message = code+"/"+m.failure.Code, "Error", m.failure.Message
		status.DisplayStatus = "Provisioning failed"
	}
	v := &instanceView{Statuses: []instanceStatus{status}}
	if m.power != "" && m.state != stateCreating {
		v.ComputerName = m.document.Properties.OSProfile.ComputerName
		v.Statuses = append(v.Statuses, instanceStatus{Code: "PowerState/" + m.power, Level: "Info", DisplayStatus: "VM " + m.power})
	}
	return v
}

func (s *Server) showNIC(n *networkInterface) shown {
	state := provisioning(&n.named)
	if state == "Succeeded" && s.clock.Now().Before(n.readyAt) {
		state = stateUpdating
	} else if state == "Succeeded" && n.failed {
		state = stateFailed
	}
	ips := []any{}
	for i, ip := range n.ips {
		method := "Dynamic"
		if ip.static {
			method = "Static"
		}
		p := map[string]any{
			"primary": i == 0, "privateIPAddress": ip.address, "privateIPAllocationMethod": method, "privateIPAddressVersion": ip.version,
			"provisioningState": state, "subnet": subResource{n.subnet.ID},
		}
		if n.address != nil && i == 0 {
			p["publicIPAddress"] = subResource{n.address.id}
		}
		ips = append(ips, map[string]any{"name": ip.name, "properties": p})
	}
	p := map[string]any{
		"provisioningState": state, "ipConfigurations": ips, "macAddress": n.mac, "primary": n.primary,
		"enableAcceleratedNetworking": n.document.Properties.EnableAcceleratedNetworking,
		"enableIPForwarding":          n.document.Properties.EnableIPForwarding,
	}
	if n.machine != nil {
		p["virtualMachine"] = subResource{n.machine.id}
	}
	return s.shown(&n.named, network+"/networkInterfaces", p)
}

func (s *Server) showAddress(a *publicAddress) shown {
	p := map[string]any{"provisioningState": provisioning(&a.named), "ipAddress": a.ip, "publicIPAllocationMethod": "Static",
		"publicIPAddressVersion": "IPv4"}
	if a.nic != nil {
		p["ipConfiguration"] = subResource{a.nic.id + "/ipConfigurations/" + a.nic.document.Properties.IPConfigurations[0].Name}
	}
	return s.shown(&a.named, network+"/publicIPAddresses", p)
}

func (s *Server) showDisk(d *disk) shown {
	p := map[string]any{
		"provisioningState": provisioning(&d.named), "diskSizeGB": d.sizeGiB, "diskState": "Unattached", "timeCreated": stamp(d.created),
		"creationData": map[string]any{"createOption": "Empty"},
	}
	if d.os {
		p["osType"] = "Linux"
	}
	out := s.shown(&d.named, compute+"/disks", p)
	out.Zones, out.SKU, out.Etag = d.zones, map[string]string{"name": d.sku}, ""
	if d.machine != nil {
		out.ManagedBy = d.machine.id
		p["diskState"] = "Attached"
	}
	return out
}

func provisioning(n *named) string {
	if !n.goneAt.IsZero() {
		return "Deleting"
	}
	return "Succeeded"
}
