package compute

import "slices"

// The answers of what the catalog has.

func (s *Server) machineTypeAnswer(r *request, zone string, t MachineType) map[string]any {
	path := "projects/" + r.project.name + "/zones/" + zone + "/machineTypes/" + t.Name
	answer := map[string]any{
		"kind": "compute#machineType", "name": t.Name, "guestCpus": float64(t.GuestCPUs), "memoryMb": float64(t.MemoryMB),
		"architecture": t.Architecture, "zone": zone, "selfLink": link(path),
	}
	var accelerators []any
	for _, a := range t.Accelerators {
		accelerators = append(accelerators, map[string]any{
			"guestAcceleratorType": a.AcceleratorType, "guestAcceleratorCount": float64(a.AcceleratorCount),
		})
	}
	if len(accelerators) > 0 {
		answer["accelerators"] = accelerators
	}
	if t.LocalSSDs > 0 {
		answer["bundledLocalSsds"] = map[string]any{"defaultInterface": "NVME", "partitionCount": float64(t.LocalSSDs)}
	}
	return answer
}

func machineTypeItems(s *Server, r *request) (all []item) {
	for _, t := range s.catalog.MachineTypes {
		if len(t.Zones) == 0 || contains(t.Zones, r.zone) {
			all = append(all, item{scope: "zones/" + r.zone, value: s.machineTypeAnswer(r, r.zone, t)})
		}
	}
	return all
}

func getMachineType(s *Server, r *request) (any, error) {
	if t := s.catalog.machineType(r.zone, r.PathValue("name")); t != nil {
		return s.machineTypeAnswer(r, r.zone, *t), nil
	}
	return nil, notFound("projects/" + r.project.name + "/zones/" + r.zone + "/machineTypes/" + r.PathValue("name"))
}

func (s *Server) zoneAnswer(r *request, name string) map[string]any {
	status := "UP"
	if slices.Contains(s.unreachable, name) {
		status = "DOWN"
	}
	return map[string]any{
		"kind": "compute#zone", "name": name, "status": status, "selfLink": link("projects/" + r.project.name + "/zones/" + name),
		"region": link("projects/" + r.project.name + "/regions/" + s.catalog.Zones[name]),
	}
}

func zoneItems(s *Server, r *request) (all []item) {
	for _, name := range sortedKeys(s.catalog.Zones) {
		all = append(all, item{scope: "", value: s.zoneAnswer(r, name)})
	}
	return all
}

func getZone(s *Server, r *request) (any, error) { return s.zoneAnswer(r, r.zone), nil }

// getImage answers with an image, by its name or as the latest of its family. Images can be read in each project that has some.
func getImage(s *Server, r *request) (any, error) {
	image := s.catalog.image(r.project.name, r.URL.Path)
	if image == nil {
		return nil, notFound(relative(r.URL.Path))
	}
	return map[string]any{
		"kind": "compute#image", "name": image.Name, "family": image.Family, "status": "READY", "architecture": image.Architecture,
		"diskSizeGb": image.SizeGB, "selfLink": link("projects/" + image.Project + "/global/images/" + image.Name),
	}, nil
}

func getSubnetwork(s *Server, r *request) (any, error) {
	found := s.catalog.subnetwork(r.project.name, r.URL.Path)
	if found == nil {
		return nil, notFound(relative(r.URL.Path))
	}
	return map[string]any{
		"kind": "compute#subnetwork", "name": found.Name, "selfLink": found.link(r.project.name), "ipCidrRange": found.Prefix + ".0/24",
	}, nil
}
