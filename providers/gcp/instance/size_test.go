package instance_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"millwright.dev/providers/driver"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

func templateOf(spec infrav1.GCPMachineSpec) *infrav1.GCPMachineTemplate {
	template := &infrav1.GCPMachineTemplate{}
	template.Spec.Template.Spec = spec
	return template
}

// The autoscaler is told what the Node will have, for each machine type (karpenter-aws #7060, autoscaler #1869): vCPUs, memory,
// cards, the disk of
// the image and the architecture.
func TestSize_EachMachineType_MatchesTheInstance(t *testing.T) {
	f := newFixture(t, compute.Options{})
	for _, machineType := range compute.DefaultCatalog().MachineTypes {
		size, err := f.Size(f.ctx, templateOf(smallest(machineType).Object.Spec))
		f.Expect(err).NotTo(HaveOccurred(), machineType.Name)
		f.Expect(size.Capacity.Cpu().Value()).To(BeEquivalentTo(machineType.GuestCPUs), machineType.Name)
		f.Expect(size.Capacity.Memory().Value()).To(BeEquivalentTo(machineType.MemoryMB<<20), machineType.Name)
		f.Expect(size.Capacity.StorageEphemeral().Value()).To(BeEquivalentTo(10<<30), machineType.Name)
		gpus, expected := size.Capacity["nvidia.com/gpu"], 0
		for _, a := range machineType.Accelerators {
			if a.AcceleratorType[0] == 'n' {
				expected = a.AcceleratorCount
			}
		}
		f.Expect(gpus.Value()).To(BeEquivalentTo(expected), machineType.Name)
		f.Expect(size.NodeInfo.Architecture).To(BeEquivalentTo(map[string]string{"X86_64": "amd64", "ARM64": "arm64"}[machineType.Architecture]))
	}
}

// The boot disk is as large as the spec says, else as the image; where the image cannot be read it is left out.
func TestSize_BootDisk(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*infrav1.GCPMachineSpec)
		fault    string
		expected int64
		class    driver.Class
	}{
		"of the spec":  {change: func(s *infrav1.GCPMachineSpec) { s.BootDisk = &infrav1.Disk{SizeGiB: ptr.To[int32](64)} }, expected: 64},
		"type alone":   {change: func(s *infrav1.GCPMachineSpec) { s.BootDisk = &infrav1.Disk{Type: "pd-ssd"} }, expected: 10},
		"large family": {change: func(s *infrav1.GCPMachineSpec) { s.Image.Family = "large" }, expected: 50},
		"image by its URL": {change: func(s *infrav1.GCPMachineSpec) {
			s.Image = infrav1.ImageReference{Name: "projects/images/global/images/large-v1-36-3"}
		}, expected: 50},
		"no such image":        {change: func(s *infrav1.GCPMachineSpec) { s.Image.Family = "none" }},
		"forbidden":            {change: func(*infrav1.GCPMachineSpec) {}, fault: "forbidden"},
		"no answer, try again": {change: func(*infrav1.GCPMachineSpec) {}, fault: "backendError", class: driver.ClassUnknown},
	} {
		f := newFixture(t, compute.Options{})
		if c.fault != "" {
			f.fault(simulator.Fault{Action: "images.*", Error: &simulator.APIError{Code: c.fault}})
			f.fault(simulator.Fault{Action: "images.getFromFamily", Error: &simulator.APIError{Code: c.fault}})
		}
		size, err := f.Size(f.ctx, templateOf(launch(zoneA, "one", 1, c.change).Object.Spec))
		f.Expect(driver.ClassOf(err)).To(Equal(c.class), name)
		f.Expect(size.Capacity.StorageEphemeral().Value()).To(BeEquivalentTo(c.expected<<30), name)
	}
}

// Cards that the spec adds count, and those of the type count once.
func TestSize_Accelerators(t *testing.T) {
	f := newFixture(t, compute.Options{})
	for machineType, card := range map[string]infrav1.Accelerator{
		"n1-standard-4": {Type: "zones/z/acceleratorTypes/nvidia-tesla-t4", Count: 2}, "g2-standard-24": {Type: "nvidia-l4-vws", Count: 2},
	} {
		size, err := f.Size(f.ctx, templateOf(launch(zoneA, "one", 1, func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.Accelerators = machineType, []infrav1.Accelerator{card}
		}).Object.Spec))
		f.Expect(err).NotTo(HaveOccurred())
		gpus := size.Capacity["nvidia.com/gpu"]
		f.Expect(gpus.Value()).To(BeEquivalentTo(2), machineType)
	}
	_, err := f.Size(f.ctx, templateOf(launch(zoneA, "one", 1, func(s *infrav1.GCPMachineSpec) { s.MachineType = "x9" }).Object.Spec))
	f.class(err, driver.ClassUnresolved)
}
