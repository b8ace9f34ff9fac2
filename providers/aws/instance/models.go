package instance

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pkg/errors"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// filterArchitecture is the name of the filter of DescribeImages.
const filterArchitecture = "architecture"

// model is what a region offers under the name of an instance type.
type model struct {
	// architectures that it can boot, by EC2's names.
	architectures []string
	cpus          int64
	memoryMiB     int64
	// accelerators by the names of their resources.
	accelerators map[string]int64

	// What follows is empty where EC2 does not say it.

	usageClasses []string
	// attachments are of volumes and, unless dedicatedAttachments is true, of interfaces as well.
	attachments          int
	dedicatedAttachments bool
	interfaces           int
	cards                int32
	ipv6PerInterface     int32
	// adapters is how many Elastic Fabric Adapters it has, if adaptersKnown is true.
	adapters       int64
	adaptersKnown  bool
	cores, threads []int32
	features       []types.SupportedAdditionalProcessorFeature
	featuresKnown  bool
}

// gpuResources are what the device plugins of the manufacturers call their devices. neuronDevices and neuronCores are those of AWS's own
// accelerators, Inferentia and Trainium: a pod asks for whole devices or for cores.
var gpuResources = map[string]string{"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu"}

const (
	neuronDevices = "aws.amazon.com/neuron"
	neuronCores   = "aws.amazon.com/neuroncore"
)

// imageFilters returns the filters of an image search. Unless they name an architecture, images that
// the instance type cannot boot are left out: publishers name the images of all architectures alike.
func (r *region) imageFilters(ctx context.Context, list []infrav1.Filter, instanceType string) ([]types.Filter, error) {
	out := filters(list)
	if slices.ContainsFunc(list, func(f infrav1.Filter) bool { return f.Name == filterArchitecture }) {
		return out, nil
	}
	m, err := r.model(ctx, instanceType)
	if err != nil {
		return nil, err
	}
	return append(out, types.Filter{Name: aws.String(filterArchitecture), Values: m.architectures}), nil
}

func (r *region) model(ctx context.Context, instanceType string) (model, error) {
	return r.models.get(ctx, instanceType, true, func(ctx context.Context) (model, error) {
		return r.describeModel(ctx, instanceType)
	})
}

func (r *region) describeModel(ctx context.Context, instanceType string) (model, error) {
	out, err := r.api.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{
		InstanceTypes: []types.InstanceType{types.InstanceType(instanceType)},
	})
	if err != nil {
		return model{}, classify("DescribeInstanceTypes", err)
	}
	for i := range out.InstanceTypes {
		if m := fromInstanceType(&out.InstanceTypes[i]); len(m.architectures) > 0 {
			return m, nil
		}
	}
	return model{}, driver.NewTerminalError("DescribeInstanceTypes", "",
		errors.Errorf("the region does not offer the instance type %s", instanceType))
}

func fromInstanceType(t *types.InstanceTypeInfo) model {
	m := model{accelerators: accelerators(t)}
	if t.ProcessorInfo != nil {
		for _, a := range t.ProcessorInfo.SupportedArchitectures {
			m.architectures = append(m.architectures, string(a))
		}
	}
	if t.VCpuInfo != nil {
		m.cpus = int64(aws.ToInt32(t.VCpuInfo.DefaultVCpus))
	}
	if t.MemoryInfo != nil {
		m.memoryMiB = aws.ToInt64(t.MemoryInfo.SizeInMiB)
	}
	limitsOf(t, &m)
	return m
}

// accelerators counts the devices that pods can ask for.
func accelerators(t *types.InstanceTypeInfo) map[string]int64 {
	counts := map[string]int64{}
	if t.GpuInfo != nil {
		for _, gpu := range t.GpuInfo.Gpus {
			if name, ok := gpuResources[aws.ToString(gpu.Manufacturer)]; ok {
				counts[name] += int64(aws.ToInt32(gpu.Count))
			}
		}
	}
	if t.NeuronInfo != nil {
		for _, device := range t.NeuronInfo.NeuronDevices {
			count := int64(aws.ToInt32(device.Count))
			counts[neuronDevices] += count
			if device.CoreInfo != nil {
				counts[neuronCores] += count * int64(aws.ToInt32(device.CoreInfo.Count))
			}
		}
	}
	return counts
}
