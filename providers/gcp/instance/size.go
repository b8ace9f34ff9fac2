package instance

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
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

// Size is that of the machine type in the first zone, with the accelerators of the type and of the template. The disk is the boot disk, of
// the size that the template or else the image has; how many pods fit depends on the network of the cluster, which is not known here.
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
	disk, err := d.bootDiskSize(ctx, TemplateScope(template), spec)
	switch {
	case err != nil:
		return machinetemplate.Size{}, err
	case disk > 0:
		capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(disk<<30, resource.BinarySI)
	}
	if gpus := found.gpus(spec); gpus > 0 {
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

// bootDiskSize is how large the boot disk is, in GiB: as the spec says, else as the image. It is 0 if the provider cannot read the image,
// which needs more rights than its use.
func (d *Driver) bootDiskSize(ctx context.Context, scope driver.Scope, spec *infrav1.GCPMachineSpec) (int64, error) {
	if b := spec.BootDisk; b != nil && b.SizeGiB != nil {
		return int64(*b.SizeGiB), nil
	}
	elements := strings.Split(spec.ImagePath(), "/") // projects/p/global/images/n, or …/images/family/f
	scope.Location = elements[1]
	r := request{method: http.MethodGet, path: elements[2:], query: url.Values{"fields": {"diskSizeGb"}}}
	if r.name = "images.get"; elements[4] == "family" {
		r.name = "images.getFromFamily"
	}
	var image struct {
		DiskSizeGB string `json:"diskSizeGb"`
	}
	switch err := d.call(ctx, scope, r, &image); {
	case driver.IsAuth(err), driver.IsNotFound(err), driver.IsUnresolved(err):
		return 0, nil
	case err != nil:
		return 0, err
	}
	size, err := strconv.ParseInt(image.DiskSizeGB, 10, 64)
	if err != nil {
		return 0, nil //nolint:nilerr // An image without a size: its disk is not known.
	}
	return size, nil
}

// gpus counts the cards of the type, or those that the spec adds. A spec may name the type's own once more, as another kind of the same.
func (t *machineType) gpus(spec *infrav1.GCPMachineSpec) (n int64) {
	for _, a := range t.Accelerators {
		n += gpusOf(a.Type, a.Count)
	}
	if n > 0 {
		return n
	}
	for _, a := range spec.Accelerators {
		n += gpusOf(a.TypeName(), int64(a.Count))
	}
	return n
}

// gpusOf counts the cards that NVIDIA's device plugin reports.
func gpusOf(accelerator string, count int64) int64 {
	if strings.HasPrefix(accelerator, "nvidia-") {
		return count
	}
	return 0
}
