package instance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
)

func TestSizeOfAnInstanceType(t *testing.T) {
	gpu := func(manufacturer string, count int32) types.GpuDeviceInfo {
		return types.GpuDeviceInfo{Manufacturer: aws.String(manufacturer), Count: aws.Int32(count)}
	}
	for _, test := range []struct {
		name          string
		architectures []types.ArchitectureType
		gpus          []types.GpuDeviceInfo
		neuron        []types.NeuronDeviceInfo
		architecture  string
		devices       map[corev1.ResourceName]int64
	}{
		{"x86, of which some boot 32 bits as well", []types.ArchitectureType{"i386", "x86_64"}, nil, nil, "amd64", nil},
		{"Graviton", []types.ArchitectureType{"arm64"}, nil, nil, "arm64", nil},
		{"a Mac, for which there is no label", []types.ArchitectureType{"x86_64_mac"}, nil, nil, "", nil},
		{"several kinds of GPU of one manufacturer", []types.ArchitectureType{"x86_64"}, []types.GpuDeviceInfo{gpu("NVIDIA", 1), gpu("NVIDIA", 7)}, nil, "amd64", map[corev1.ResourceName]int64{"nvidia.com/gpu": 8}},
		{"AMD's", []types.ArchitectureType{"x86_64"}, []types.GpuDeviceInfo{gpu("AMD", 2)}, nil, "amd64", map[corev1.ResourceName]int64{"amd.com/gpu": 2}},
		{"a GPU without a device plugin that is known", []types.ArchitectureType{"x86_64"}, []types.GpuDeviceInfo{gpu("Habana", 8)}, nil, "amd64", nil},
		{"Trainium", []types.ArchitectureType{"x86_64"}, nil, []types.NeuronDeviceInfo{{Count: aws.Int32(16), CoreInfo: &types.NeuronDeviceCoreInfo{Count: aws.Int32(2)}}},
			"amd64", map[corev1.ResourceName]int64{"aws.amazon.com/neuron": 16, "aws.amazon.com/neuroncore": 32}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			info := &types.InstanceTypeInfo{
				ProcessorInfo: &types.ProcessorInfo{SupportedArchitectures: test.architectures},
				VCpuInfo:      &types.VCpuInfo{DefaultVCpus: aws.Int32(4)},
				MemoryInfo:    &types.MemoryInfo{SizeInMiB: aws.Int64(512)},
			}
			if test.gpus != nil {
				info.GpuInfo = &types.GpuInfo{Gpus: test.gpus}
			}
			if test.neuron != nil {
				info.NeuronInfo = &types.NeuronInfo{NeuronDevices: test.neuron}
			}
			size := sizeOf(fromInstanceType(info), &infrav1.AWSMachineSpec{}, 0)
			g.Expect(size.NodeInfo.Architecture).To(Equal(test.architecture))
			g.Expect(size.NodeInfo.OperatingSystem).To(Equal("linux"))
			g.Expect(size.Capacity.Cpu().Value()).To(BeEquivalentTo(4))
			g.Expect(size.Capacity.Memory().String()).To(Equal("512Mi"))
			delete(size.Capacity, corev1.ResourceCPU)
			delete(size.Capacity, corev1.ResourceMemory)
			g.Expect(size.Capacity).To(HaveLen(len(test.devices)))
			for name, count := range test.devices {
				quantity := size.Capacity[name]
				g.Expect(quantity.Value()).To(Equal(count), string(name))
			}
		})
	}
}
