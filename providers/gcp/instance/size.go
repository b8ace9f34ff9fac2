package instance

import (
	"context"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/machinetemplate"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
)

var _ machinetemplate.Sizer[*infrav1.GCPMachineTemplate] = (*Driver)(nil)

// machineType is a machine type of a zone.
type machineType struct {
	Name         string `json:"name"`
	GuestCPUs    int64  `json:"guestCpus"`
	MemoryMB     int64  `json:"memoryMb"`
	Architecture string `json:"architecture"`
	Accelerators []struct {
		Type  string `json:"guestAcceleratorType"`
		Count int64  `json:"guestAcceleratorCount"`
	} `json:"accelerators"`
	BundledLocalSSDs struct {
		PartitionCount int64 `json:"partitionCount"`
	} `json:"bundledLocalSsds"`
}

const machineTypeFields = "name,guestCpus,memoryMb,architecture,accelerators,bundledLocalSsds/partitionCount"

// TemplateScope is the scope of the calls of Size.
func TemplateScope(template *infrav1.GCPMachineTemplate) driver.Scope {
	return driver.Scope{Identity: template.IdentityName(), Location: template.Spec.Template.Spec.ProjectID()}
}

// Size is that of the machine type in the first zone, with the accelerators of the type and of the template. The disk is the boot disk
// where the template gives its size; how many pods fit depends on the network of the cluster, which is not known here.
func (d *Driver) Size(ctx context.Context, template *infrav1.GCPMachineTemplate) (machinetemplate.Size, error) {
	spec := &template.Spec.Template.Spec
	found, err := d.machineType(ctx, TemplateScope(template), spec.ZoneNames()[0], spec.MachineTypeNames()[0])
	if err != nil {
		return machinetemplate.Size{}, ofSpec(err)
	}
	if found.GuestCPUs == 0 || found.MemoryMB == 0 {
		return machinetemplate.Size{}, driver.NewUnknownError("machineTypes.get", "",
			errors.Errorf("Compute Engine reports no size of machine type %s", spec.MachineType))
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(found.GuestCPUs, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(found.MemoryMB<<20, resource.BinarySI),
	}
	if b := spec.BootDisk; b != nil && b.SizeGiB != nil {
		capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(*b.SizeGiB)<<30, resource.BinarySI)
	}
	var gpus int64
	for _, a := range found.Accelerators {
		gpus += gpusOf(a.Type, a.Count)
	}
	for _, a := range spec.Accelerators {
		gpus += gpusOf(a.TypeName(), int64(a.Count))
	}
	if gpus > 0 {
		capacity["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	// The bootstrap provider's Nodes run Linux.
	info := driverv1.NodeInfo{OperatingSystem: "linux"}
	switch found.Architecture {
	case "X86_64":
		info.Architecture = "amd64"
	case "ARM64":
		info.Architecture = "arm64"
	}
	return machinetemplate.Size{Capacity: capacity, NodeInfo: info}, nil
}

// gpusOf counts the cards that NVIDIA's device plugin reports.
func gpusOf(accelerator string, count int64) int64 {
	if strings.HasPrefix(accelerator, "nvidia-") {
		return count
	}
	return 0
}
