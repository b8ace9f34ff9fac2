package instance

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/machinetemplate"
)

var _ machinetemplate.Sizer[*infrav1.AzureMachineTemplate] = (*Driver)(nil)

// sizes remembers what was found out: what a region offers under a name does not change.
type sizes struct {
	mu    sync.Mutex
	known map[string]machinetemplate.Size
	// images are the sizes in GiB of the OS disks that images make.
	images map[string]int64
}

func newSizes() *sizes {
	return &sizes{known: map[string]machinetemplate.Size{}, images: map[string]int64{}}
}

// TemplateScope is the scope of the calls of Size.
func TemplateScope(template *infrav1.AzureMachineTemplate) driver.Scope {
	return driver.Scope{Identity: template.IdentityName(), Location: locationOfScope(&template.Spec.Template.Spec)}
}

// Size is that of the template's size in the list of resource SKUs. The disk is the OS disk, of the size that the template or
// else its image has; how many pods fit depends on the network of the cluster, which is not known here.
func (d *Driver) Size(ctx context.Context, template *infrav1.AzureMachineTemplate) (machinetemplate.Size, error) {
	spec := canonical(&template.Spec.Template.Spec)
	size, err := d.sizeOf(ctx, TemplateScope(template), spec)
	if err != nil {
		return machinetemplate.Size{}, err
	}
	size.Capacity = size.Capacity.DeepCopy()
	gib := int64(0)
	if disk := spec.OSDisk; disk != nil && disk.SizeGiB != nil {
		gib = int64(*disk.SizeGiB)
	} else {
		gib = d.imageSize(ctx, TemplateScope(template), spec)
	}
	if gib > 0 {
		size.Capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(gib<<30, resource.BinarySI)
	}
	return size, nil
}

func (d *Driver) sizeOf(ctx context.Context, scope driver.Scope, spec *infrav1.AzureMachineSpec) (machinetemplate.Size, error) {
	const operation = "ResourceSkus_List"
	key := func(name string) string {
		// Of each identity for itself: no identity learns what another may ask.
		return scope.Identity + "/" + strings.ToLower(spec.SubscriptionID+"/"+spec.Location+"/"+name)
	}
	d.sizes.mu.Lock()
	known, ok := d.sizes.known[key(spec.VMSize)]
	d.sizes.mu.Unlock()
	if ok {
		return known, nil
	}
	s, _, err := d.in(ctx, scope)
	if err != nil {
		return machinetemplate.Size{}, err
	}
	pager := s.skus.NewListPager(&armcompute.ResourceSKUsClientListOptions{Filter: ptr("location eq '" + spec.Location + "'")})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return machinetemplate.Size{}, driver.WithoutEffect(classify(operation, err))
		}
		d.sizes.mu.Lock()
		for _, sku := range page.Value {
			if sku != nil && value(sku.ResourceType) == "virtualMachines" {
				d.sizes.known[key(value(sku.Name))] = fromSKU(sku)
			}
		}
		known, ok = d.sizes.known[key(spec.VMSize)]
		d.sizes.mu.Unlock()
	}
	if !ok || known.Capacity.Cpu().IsZero() || known.Capacity.Memory().IsZero() {
		return machinetemplate.Size{}, driver.NewTerminalError(operation, "", errors.Errorf("%s does not offer the size %s", spec.Location,
			spec.VMSize))
	}
	return known, nil
}

// architectures of Nodes by Azure's names.
var architectures = map[string]string{"x64": "amd64", "Arm64": "arm64"}

func fromSKU(sku *armcompute.ResourceSKU) machinetemplate.Size {
	size := machinetemplate.Size{Capacity: corev1.ResourceList{}, NodeInfo: driverv1.NodeInfo{OperatingSystem: "linux"}}
	for _, c := range sku.Capabilities {
		if c == nil {
			continue
		}
		number, _ := strconv.ParseFloat(value(c.Value), 64)
		switch value(c.Name) {
		case "vCPUs":
			if size.Capacity.Cpu().IsZero() {
				size.Capacity[corev1.ResourceCPU] = *resource.NewQuantity(int64(number), resource.DecimalSI)
			}
		case "vCPUsAvailable": // Fewer than vCPUs, which is what counts for quotas, in constrained sizes.
			if number >= 1 {
				size.Capacity[corev1.ResourceCPU] = *resource.NewQuantity(int64(number), resource.DecimalSI)
			}
		case "MemoryGB": // Of 2^30 bytes, and with fractions.
			size.Capacity[corev1.ResourceMemory] = *resource.NewQuantity(int64(number*(1<<30)), resource.BinarySI)
		case "GPUs":
			if number >= 1 {
				size.Capacity[gpuResource(value(sku.Name))] = *resource.NewQuantity(int64(number), resource.DecimalSI)
			}
		case "CpuArchitectureType":
			size.NodeInfo.Architecture = architectures[value(c.Value)]
		}
	}
	return size
}

// gpuResource is what the device plugin of the manufacturer calls the devices of a size. Those of AMD are in the NVv4 and NG families.
func gpuResource(size string) corev1.ResourceName {
	if strings.HasPrefix(size, "Standard_NG") || strings.HasPrefix(size, "Standard_NV") && strings.HasSuffix(size, "as_v4") {
		return "amd.com/gpu"
	}
	return "nvidia.com/gpu"
}
