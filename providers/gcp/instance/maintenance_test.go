package instance_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

// smallest is a launch of a machine type with the fewest fields, where its zones and an image of its architecture are.
func smallest(t compute.MachineType, changes ...func(*infrav1.GCPMachineSpec)) gcpLaunch {
	zones := t.Zones
	if len(zones) == 0 {
		zones = []string{zoneA}
	}
	return launch(zones[0], "one", 1, append([]func(*infrav1.GCPMachineSpec){func(s *infrav1.GCPMachineSpec) {
		*s = infrav1.GCPMachineSpec{Project: project, Zones: zones, MachineType: t.Name,
			Image: infrav1.ImageReference{Project: "images", Family: map[string]string{"X86_64": "node", "ARM64": "node-arm"}[t.Architecture]}}
	}}, changes...)...)
}

// Each machine type launches with the smallest spec, as standard and as spot instance (openshift/installer PR 8148,
// karpenter-provider-gcp #167,
// devpod #973).
func TestCreate_KarpenterGCP167_EachMachineType_LaunchesWithSmallestSpec(t *testing.T) {
	types := compute.DefaultCatalog().MachineTypes
	NewWithT(t).Expect(len(types)).To(BeNumerically(">=", 40))
	for _, custom := range []string{"custom-2-4096", "e2-custom-4-8192", "n2-custom-8-81920-ext", "n2d-custom-4-8192", "n4-custom-2-8192"} {
		types = append(types, compute.MachineType{Name: custom, Architecture: "X86_64"})
	}
	for _, machineType := range types {
		for _, model := range []infrav1.ProvisioningModel{"", infrav1.ProvisioningModelSpot} {
			f := newFixture(t, compute.Options{})
			_, err := f.Create(f.ctx, smallest(machineType, func(s *infrav1.GCPMachineSpec) { s.ProvisioningModel = model }))
			f.Expect(err).NotTo(HaveOccurred(), "%s %s", machineType.Name, model)
		}
	}
}

// A machine type of a series that is not known yet is looked up once, and migrates if it cannot be.
func TestCreate_UnknownSeries_IsLookedUp(t *testing.T) {
	catalog := compute.DefaultCatalog()
	gpu := compute.MachineType{Name: "q9-standard-4", GuestCPUs: 4, MemoryMB: 8192, Architecture: "X86_64",
		Accelerators: []compute.Accelerator{{AcceleratorType: "nvidia-l4", AcceleratorCount: 1}}}
	catalog.MachineTypes = append(catalog.MachineTypes, gpu)
	f := newFixture(t, compute.Options{Catalog: catalog})
	for attempt := 1; attempt <= 2; attempt++ {
		l := smallest(gpu)
		l.Name = []string{"", "one", "two"}[attempt]
		l.RequestID = driver.LaunchRequestID(l.Name)
		_, err := f.Create(f.ctx, l)
		f.Expect(err).NotTo(HaveOccurred())
	}
	f.Expect(f.count("machineTypes.get")).To(Equal(1))

	f = newFixture(t, compute.Options{Catalog: catalog})
	f.fault(simulator.Fault{Action: "machineTypes.get", Error: &simulator.APIError{Code: "forbidden"}})
	_, err := f.Create(f.ctx, smallest(gpu))
	f.class(err, driver.ClassTerminal)
	f.Expect(err).To(MatchError(ContainSubstring("do not support live migration")), "what the cloud says, and no launch that hangs")
}

// A machine type that no zone of the spec has is a mistake; one that another zone has is a shortage of this zone.
func TestCreate_MissingMachineType_IsTerminalOnlyIfNoZoneHasIt(t *testing.T) {
	for name, c := range map[string]struct {
		machineType string
		expected    driver.Class
	}{
		"typo":                    {"e2-standrad-2", driver.ClassTerminal},
		"of another region":       {"c4d-standard-4", driver.ClassTerminal},
		"custom, odd CPUs":        {"n2-custom-3-4096", driver.ClassTerminal},
		"custom, too much memory": {"e2-custom-2-65536", driver.ClassTerminal},
		"custom of a fixed type":  {"c3-custom-4-8192", driver.ClassTerminal},
		"in another zone":         {"a4-highgpu-8g", driver.ClassCapacity},
	} {
		f := newFixture(t, compute.Options{})
		_, err := f.Create(f.ctx, launch(zoneA, "one", 1, func(s *infrav1.GCPMachineSpec) { s.MachineType = c.machineType }))
		f.Expect(driver.ClassOf(err)).To(Equal(c.expected), "%s: %v", name, err)
		if c.expected == driver.ClassTerminal {
			f.Expect(err).To(MatchError(ContainSubstring("exists in no zone of spec.zones (us-central1-a, us-central1-b)")), name)
		}
	}
	f := newFixture(t, compute.Options{})
	f.fault(simulator.Fault{Action: "machineTypes.get", Error: &simulator.APIError{Code: "backendError"}})
	_, err := f.Create(f.ctx, launch(zoneA, "one", 1, func(s *infrav1.GCPMachineSpec) { s.MachineType = "x9" }))
	f.class(err, driver.ClassCapacity)
}
