package compute

import "strings"

// Catalog is what exists in the cloud at first.
type Catalog struct {
	// Zones with their regions.
	Zones map[string]string
	// MachineTypes by name. Custom types are not simulated.
	MachineTypes []MachineType
	// AcceleratorTypes are in all zones.
	AcceleratorTypes []string
	// Images of all projects.
	Images []Image
	// Subnetworks of all projects.
	Subnetworks []Subnetwork
}

// MachineType is a type of instances.
type MachineType struct {
	Name      string
	GuestCPUs int
	MemoryMB  int
	// Architecture is X86_64 or ARM64.
	Architecture string
	// Zones that have it; all of them when empty.
	Zones []string
	// Accelerators that each instance has.
	Accelerators []Accelerator
}

// Image is what boot disks are created from.
type Image struct {
	Project, Name, Family string
	SizeGB                Int64
	Architecture          string
}

// Subnetwork is one of a region.
type Subnetwork struct {
	// Project is empty for one that each project has.
	Project               string
	Region, Name, Network string
	// Prefix of its addresses, such as 10.1.0: the last byte counts from 2 to 1 more than Addresses.
	Prefix    string
	Addresses int
	// IPv6Prefix of its addresses, such as 2600:1900:1:1; empty if it has none. IPv6AccessType is INTERNAL or EXTERNAL.
	IPv6Prefix     string
	IPv6AccessType string
	// SecondaryRanges that alias ranges may be taken from.
	SecondaryRanges []string
}

// DiskTypes are in all zones.
var diskTypes = []string{
	"pd-standard", "pd-balanced", "pd-ssd", "pd-extreme", "hyperdisk-balanced", "hyperdisk-extreme", "hyperdisk-throughput", "local-ssd",
}

// DefaultCatalog has a region with three zones and one with one.
func DefaultCatalog() *Catalog {
	return &Catalog{
		Zones: map[string]string{
			"us-central1-a": "us-central1", "us-central1-b": "us-central1", "us-central1-c": "us-central1", "europe-west3-a": "europe-west3",
		},
		MachineTypes: []MachineType{
			{Name: "e2-micro", GuestCPUs: 2, MemoryMB: 1024, Architecture: "X86_64"},
			{Name: "e2-standard-2", GuestCPUs: 2, MemoryMB: 8192, Architecture: "X86_64"},
			{Name: "e2-standard-4", GuestCPUs: 4, MemoryMB: 16384, Architecture: "X86_64"},
			{Name: "e2-standard-8", GuestCPUs: 8, MemoryMB: 32768, Architecture: "X86_64"},
			{Name: "n2-standard-4", GuestCPUs: 4, MemoryMB: 16384, Architecture: "X86_64", Zones: []string{"us-central1-a", "us-central1-b"}},
			{Name: "t2a-standard-2", GuestCPUs: 2, MemoryMB: 8192, Architecture: "ARM64"},
			{Name: "a2-highgpu-1g", GuestCPUs: 12, MemoryMB: 87040, Architecture: "X86_64",
				Accelerators: []Accelerator{{AcceleratorType: "nvidia-tesla-a100", AcceleratorCount: 1}}},
		},
		AcceleratorTypes: []string{"nvidia-tesla-t4", "nvidia-l4"},
		Images: []Image{
			{Project: "images", Name: "node-v1-36-2", Family: "node", SizeGB: 10, Architecture: "X86_64"},
			{Project: "images", Name: "node-v1-36-3", Family: "node", SizeGB: 10, Architecture: "X86_64"},
			// Those of config/samples/gcp.
			{Project: "my-images", Name: "millwright-node-v1-36-3", Family: "millwright-node-v1-36", SizeGB: 10, Architecture: "X86_64"},
			{Project: "images", Name: "node-arm-v1-36-3", Family: "node-arm", SizeGB: 10, Architecture: "ARM64"},
		},
		Subnetworks: []Subnetwork{
			{Region: "us-central1", Name: "default", Network: "default", Prefix: "10.128.0", Addresses: 250},
			{Project: "my-host-project", Region: "us-central1", Name: "nodes", Network: "nodes", Prefix: "10.6.0", Addresses: 250},
			{Region: "europe-west3", Name: "default", Network: "default", Prefix: "10.156.0", Addresses: 250},
			{Project: "shared-network", Region: "us-central1", Name: "nodes", Network: "shared", Prefix: "10.7.0", Addresses: 250,
				IPv6Prefix: "fd20:0:0:7", IPv6AccessType: "INTERNAL", SecondaryRanges: []string{"pods"}},
			{Project: "shared-network", Region: "us-central1", Name: "small", Network: "shared", Prefix: "10.8.0", Addresses: 1},
			{Project: "shared-network", Region: "us-central1", Name: "public", Network: "shared", Prefix: "10.9.0", Addresses: 250,
				IPv6Prefix: "2600:1900:4000:9", IPv6AccessType: "EXTERNAL"},
		},
	}
}

func (c *Catalog) machineType(zone, name string) *MachineType {
	for i, t := range c.MachineTypes {
		if t.Name == name && (len(t.Zones) == 0 || contains(t.Zones, zone)) {
			return &c.MachineTypes[i]
		}
	}
	return nil
}

// image is the one that a URL names, by its name or as the latest of its family.
func (c *Catalog) image(own, url string) *Image {
	path := relative(url)
	if strings.HasPrefix(path, "global/") {
		path = "projects/" + own + "/" + path
	}
	var found *Image
	for i, image := range c.Images {
		base := "projects/" + image.Project + "/global/images/"
		if path == base+image.Name || path == base+"family/"+image.Family {
			found = &c.Images[i]
		}
	}
	return found
}

// subnetwork is the one that a URL names.
func (c *Catalog) subnetwork(own, url string) *Subnetwork {
	path := relative(url)
	if strings.HasPrefix(path, "regions/") {
		path = "projects/" + own + "/" + path
	}
	for i, s := range c.Subnetworks {
		project := s.Project
		if project == "" {
			project = own
		}
		if path == "projects/"+project+"/regions/"+s.Region+"/subnetworks/"+s.Name {
			return &c.Subnetworks[i]
		}
	}
	return nil
}

func (s *Subnetwork) link(own string) string {
	project := s.Project
	if project == "" {
		project = own
	}
	return link("projects/" + project + "/regions/" + s.Region + "/subnetworks/" + s.Name)
}

func contains(list []string, wanted string) bool {
	for _, item := range list {
		if item == wanted {
			return true
		}
	}
	return false
}

// base is the last element of a URL.
func base(url string) string { return url[strings.LastIndex(url, "/")+1:] }
