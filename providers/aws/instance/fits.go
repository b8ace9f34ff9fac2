package instance

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pkg/errors"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// manyAttachments is from how many volumes and interfaces on the limit of the instance type is looked up: none has a lower one.
const manyAttachments = 10

// checkType refuses before the launch what the instance type does not have, with the field: EC2 would refuse it as well. It makes no call
// for a spec without such options. Limits that EC2 does not report, and types that it cannot describe, are checked by the launch alone.
func (r *region) checkType(ctx context.Context, spec *infrav1.AWSMachineSpec, instanceType string) error {
	attachments := 2 + len(spec.Volumes) + len(spec.ExtraInterfaces) // The root volume and the primary interface are two.
	plain := spec.Spot == nil && spec.CPUOptions == nil && len(spec.ExtraInterfaces) == 0 && spec.IPv6 == nil && fabricAdapters(spec) == 0
	if plain && attachments < manyAttachments {
		return nil
	}
	m, err := r.model(ctx, instanceType)
	if err != nil {
		return nil //nolint:nilerr // The launch has the better words for it.
	}
	if problem := misfit(spec, m, attachments); problem != nil {
		return driver.NewTerminalError("DescribeInstanceTypes", "", errors.WithMessage(problem, instanceType))
	}
	return nil
}

// misfit returns an error that names the first option of the spec that the instance type does not support, and the remedy. Limits that EC2
// does not report are not checked.
func misfit(spec *infrav1.AWSMachineSpec, m model, attachments int) error {
	interfaces := 1 + len(spec.ExtraInterfaces)
	if m.dedicatedAttachments {
		attachments -= interfaces
	}
	switch {
	case spec.Spot != nil && len(m.usageClasses) > 0 && !slices.Contains(m.usageClasses, string(types.UsageClassTypeSpot)):
		return errors.New("spot: the instance type is not sold as spot capacity: remove spot, or choose another type")
	case m.interfaces > 0 && interfaces > m.interfaces:
		return errors.Errorf("extraInterfaces: the instance type has at most %d network interfaces, the spec asks for %d: "+
			"remove some, or choose another type",
			m.interfaces, interfaces)
	case m.attachments > 0 && attachments > m.attachments:
		return errors.Errorf("volumes: the instance type takes at most %d attachments, the spec asks for %d: "+
			"remove volumes, or choose another type", m.attachments, attachments)
	case m.adaptersKnown && fabricAdapters(spec) > m.adapters:
		return errors.Errorf("interfaceType: the instance type has at most %d Elastic Fabric Adapters, the spec asks for %d: "+
			"remove some, or choose another type",
			m.adapters, fabricAdapters(spec))
	case spec.IPv6 != nil && m.ipv6PerInterface > 0 && aws.ToInt32(spec.IPv6.Count) > m.ipv6PerInterface:
		return errors.Errorf("ipv6.count: an interface of the instance type has at most %d addresses: lower the count", m.ipv6PerInterface)
	}
	for i, extra := range spec.ExtraInterfaces {
		if card := aws.ToInt32(extra.NetworkCardIndex); m.cards > 0 && card >= m.cards {
			return errors.Errorf("extraInterfaces[%d].networkCardIndex: the instance type has %d network cards, counted from 0: "+
				"lower the index", i, m.cards)
		}
	}
	return misfitOfCPU(spec.CPUOptions, m)
}

// misfitOfCPU is misfit for the options of the processors.
func misfitOfCPU(o *infrav1.CPUOptions, m model) error {
	if o == nil {
		return nil
	}
	lacks := func(on *bool, feature types.SupportedAdditionalProcessorFeature) bool {
		return aws.ToBool(on) && len(m.architectures) > 0 && m.featuresKnown && !slices.Contains(m.features, feature)
	}
	switch {
	case o.CoreCount != nil && len(m.cores) > 0 && !slices.Contains(m.cores, *o.CoreCount):
		return errors.Errorf("cpuOptions.coreCount: the instance type takes one of %v", m.cores)
	case o.ThreadsPerCore != nil && len(m.threads) > 0 && !slices.Contains(m.threads, *o.ThreadsPerCore):
		return errors.Errorf("cpuOptions.threadsPerCore: the instance type takes one of %v", m.threads)
	case lacks(o.AMDSEVSNP, types.SupportedAdditionalProcessorFeatureAmdSevSnp):
		return errors.New("cpuOptions.amdSevSnp: the instance type does not support it: remove it, or choose another type")
	case lacks(o.NestedVirtualization, types.SupportedAdditionalProcessorFeatureNestedVirtualization):
		return errors.New("cpuOptions.nestedVirtualization: the instance type does not support it: remove it, or choose another type")
	}
	return nil
}

// limitsOf reads the limits of an instance type that a launch is checked against.
func limitsOf(t *types.InstanceTypeInfo, m *model) {
	for _, class := range t.SupportedUsageClasses {
		m.usageClasses = append(m.usageClasses, string(class))
	}
	if p := t.ProcessorInfo; p != nil {
		// EC2 lists no features of a type that has none; that it describes the network shows that the rest is complete too.
		m.features, m.featuresKnown = p.SupportedFeatures, t.NetworkInfo != nil
	}
	if v := t.VCpuInfo; v != nil {
		m.cores, m.threads = v.ValidCores, v.ValidThreadsPerCore
	}
	if e := t.EbsInfo; e != nil {
		m.attachments = int(aws.ToInt32(e.MaximumEbsAttachments))
		m.dedicatedAttachments = e.AttachmentLimitType == types.AttachmentLimitTypeDedicated
	}
	if n := t.NetworkInfo; n != nil {
		m.interfaces, m.cards = int(aws.ToInt32(n.MaximumNetworkInterfaces)), aws.ToInt32(n.MaximumNetworkCards)
		m.ipv6PerInterface = aws.ToInt32(n.Ipv6AddressesPerInterface)
		m.adaptersKnown = n.EfaSupported != nil && (!*n.EfaSupported || n.EfaInfo != nil)
		if n.EfaInfo != nil {
			m.adapters = int64(aws.ToInt32(n.EfaInfo.MaximumEfaInterfaces))
		}
	}
}
