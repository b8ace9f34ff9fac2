package instance

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/machinetemplate"
)

var _ machinetemplate.Sizer[*infrav1.AWSMachineTemplate] = (*Driver)(nil)

// TemplateScope is the scope of the calls of Size.
func TemplateScope(template *infrav1.AWSMachineTemplate) driver.Scope {
	return driver.Scope{Identity: template.IdentityName(), Location: template.Spec.Template.Spec.Region}
}

// Size is that of the instance type, less what cpuOptions leave out. The disk is the root volume: of the size that the template gives, else
// of the image's own. How many pods fit depends on the network of the cluster, which is not known here.
func (d *Driver) Size(ctx context.Context, template *infrav1.AWSMachineTemplate) (machinetemplate.Size, error) {
	spec := &normalized(&infrav1.AWSMachine{Spec: template.Spec.Template.Spec}).Spec
	r, err := d.in(ctx, TemplateScope(template))
	if err != nil {
		return machinetemplate.Size{}, err
	}
	m, err := r.model(ctx, spec.InstanceType)
	if err != nil {
		return machinetemplate.Size{}, err
	}
	if m.cpus == 0 || m.memoryMiB == 0 {
		return machinetemplate.Size{}, driver.NewUnknownError("DescribeInstanceTypes", "",
			errors.Errorf("EC2 reports no size of instance type %s", spec.InstanceType))
	}
	disk, err := r.rootGiB(ctx, spec)
	return sizeOf(m, spec, disk), err
}

// rootGiB is the size of the root volume; 0 if it is not known. An image that is not there, or may not be described, leaves the rest of
// the size as it is.
func (r *region) rootGiB(ctx context.Context, spec *infrav1.AWSMachineSpec) (int32, error) {
	if v := spec.RootVolume; v != nil && (v.SizeGiB != nil || v.SnapshotID != "") {
		return aws.ToInt32(v.SizeGiB), nil
	}
	img, err := r.findImage(ctx, spec, true)
	if driver.IsUnresolved(err) || driver.IsAuth(err) || driver.IsTerminal(err) {
		return 0, nil
	}
	return img.rootGiB, err
}

func sizeOf(m model, spec *infrav1.AWSMachineSpec, rootGiB int32) machinetemplate.Size {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(cpusOf(m, spec), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(m.memoryMiB<<20, resource.BinarySI),
	}
	if rootGiB > 0 {
		capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(rootGiB)<<30, resource.BinarySI)
	}
	for name, count := range m.accelerators {
		capacity[corev1.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	if count := fabricAdapters(spec); count > 0 {
		capacity[efaResource] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	// The bootstrap provider's Nodes run Linux.
	info := driverv1.NodeInfo{OperatingSystem: "linux"}
	switch {
	case slices.Contains(m.architectures, string(types.ArchitectureTypeX8664)):
		info.Architecture = "amd64"
	case slices.Contains(m.architectures, string(types.ArchitectureTypeArm64)):
		info.Architecture = "arm64"
	}
	return machinetemplate.Size{Capacity: capacity, NodeInfo: info}
}

// cpusOf is how many CPUs the operating system sees: those of the instance type, unless the template leaves cores or threads out.
func cpusOf(m model, spec *infrav1.AWSMachineSpec) int64 {
	if o := spec.CPUOptions; o != nil && o.CoreCount != nil && o.ThreadsPerCore != nil {
		return int64(*o.CoreCount) * int64(*o.ThreadsPerCore)
	}
	return m.cpus
}

// efaResource is what the device plugin for Elastic Fabric Adapters calls them.
const efaResource = "vpc.amazonaws.com/efa"

// fabricAdapters counts the Elastic Fabric Adapters that a machine is launched with.
func fabricAdapters(spec *infrav1.AWSMachineSpec) int64 {
	var count int64
	if spec.InterfaceType == infrav1.InterfaceTypeEFA {
		count++
	}
	for _, extra := range spec.ExtraInterfaces {
		if extra.InterfaceType == infrav1.InterfaceTypeEFA || extra.InterfaceType == infrav1.InterfaceTypeEFAOnly {
			count++
		}
	}
	return count
}
