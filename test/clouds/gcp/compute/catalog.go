package compute

import "strings"

// Catalog is what exists in the cloud at first.
type Catalog struct {
	// Zones with their regions.
	Zones map[string]string
	// MachineTypes by name. Custom types exist in all zones.
	MachineTypes []MachineType
	// AcceleratorTypes are in all zones.
	AcceleratorTypes []string
	// Images of all projects.
	Images []Image
	// Subnetworks of all projects.
	Subnetworks []Subnetwork
	// Missing are names, with wildcards, of reservations, service accounts and keys that do not exist; others do.
	Missing []string
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
	// LocalSSDs is the number of local SSDs that each instance has without asking, each of LocalSSDSizeGB.
	LocalSSDs, LocalSSDSizeGB int
}

// Image is what boot disks are created from.
type Image struct {
	Project, Name, Family string
	SizeGB                Int64
	Architecture          string
	// Without are the guest OS features that the image lacks, such as UEFI_COMPATIBLE or GVNIC.
	Without []string
	// Deprecated is DEPRECATED, OBSOLETE or DELETED; empty for an image in use.
	Deprecated string
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
	"pd-standard", "pd-balanced", "pd-ssd", "pd-extreme", "hyperdisk-balanced", "hyperdisk-balanced-high-availability", "hyperdisk-extreme",
	"hyperdisk-throughput", "hyperdisk-ml", "local-ssd",
}

// DefaultCatalog has a region with three zones and one with one.
func DefaultCatalog() *Catalog {
	return &Catalog{
		Zones: map[string]string{
			"us-central1-a": "us-central1", "us-central1-b": "us-central1", "us-central1-c": "us-central1", "europe-west3-a": "europe-west3",
		},
		MachineTypes: parseMachineTypes(),
		AcceleratorTypes: []string{
			"nvidia-tesla-t4", "nvidia-tesla-t4-vws", "nvidia-tesla-p4", "nvidia-tesla-p100", "nvidia-tesla-v100", "nvidia-l4", "nvidia-l4-vws",
			"nvidia-tesla-a100", "nvidia-a100-80gb", "nvidia-h100-80gb", "nvidia-h100-mega-80gb", "nvidia-h200-141gb", "nvidia-b200",
			"nvidia-gb200", "nvidia-rtx-pro-6000",
		},
		Missing: []string{"*missing*"},
		Images: []Image{
			{Project: "images", Name: "node-v1-36-2", Family: "node", SizeGB: 10, Architecture: "X86_64"},
			{Project: "images", Name: "node-v1-36-3", Family: "node", SizeGB: 10, Architecture: "X86_64"},
			// Those of config/samples/gcp.
			{Project: "my-images", Name: "millwright-node-v1-36-3", Family: "millwright-node-v1-36", SizeGB: 10, Architecture: "X86_64"},
			{Project: "images", Name: "node-arm-v1-36-3", Family: "node-arm", SizeGB: 10, Architecture: "ARM64"},
			{Project: "images", Name: "bios-v1-36-3", Family: "bios", SizeGB: 10, Architecture: "X86_64",
				Without: []string{"UEFI_COMPATIBLE", "GVNIC", "SEV_CAPABLE", "SEV_SNP_CAPABLE", "TDX_CAPABLE"}},
			{Project: "images", Name: "node-v1-36-1", Family: "node", SizeGB: 10, Architecture: "X86_64", Deprecated: "DEPRECATED"},
			{Project: "images", Name: "node-v1-35-9", SizeGB: 10, Architecture: "X86_64", Deprecated: "OBSOLETE"},
			{Project: "images", Name: "large-v1-36-3", Family: "large", SizeGB: 50, Architecture: "X86_64"},
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
	return custom(name)
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
		if path == base+image.Name || path == base+"family/"+image.Family && image.Deprecated == "" {
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
