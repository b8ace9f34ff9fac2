package ec2

import (
	"strconv"
	"strings"

	"millwright.dev/test/clouds/simulator"
)

type describeTypesReply struct {
	envelope
	NextToken string    `xml:"nextToken,omitempty"`
	Types     []xmlType `xml:"instanceTypeSet>item"`
}

type xmlType struct {
	Name              string      `xml:"instanceType"`
	CurrentGeneration bool        `xml:"currentGeneration"`
	FreeTier          bool        `xml:"freeTierEligible"`
	UsageClasses      []string    `xml:"supportedUsageClasses>item"`
	RootDeviceTypes   []string    `xml:"supportedRootDeviceTypes>item"`
	Virtualization    []string    `xml:"supportedVirtualizationTypes>item"`
	BareMetal         bool        `xml:"bareMetal"`
	Hypervisor        string      `xml:"hypervisor"`
	Architectures     []string    `xml:"processorInfo>supportedArchitectures>item"`
	VCPU              xmlVCPU     `xml:"vCpuInfo"`
	MemoryMiB         int         `xml:"memoryInfo>sizeInMiB"`
	InstanceStorage   bool        `xml:"instanceStorageSupported"`
	Network           xmlNetwork  `xml:"networkInfo"`
	GPU               *xmlGPUInfo `xml:"gpuInfo"`
	Burstable         bool        `xml:"burstablePerformanceSupported"`
	BootModes         []string    `xml:"supportedBootModes>item"`
	Strategies        []string    `xml:"placementGroupInfo>supportedStrategies>item"`
	Features          []string    `xml:"processorInfo>supportedFeatures>item"`
	EBS               xmlEBS      `xml:"ebsInfo"`
}

type xmlEBS struct {
	LimitType  string `xml:"attachmentLimitType"`
	Max        int    `xml:"maximumEbsAttachments"`
	Encryption string `xml:"encryptionSupport"`
}

type xmlNetworkCard struct {
	Index         int `xml:"networkCardIndex"`
	MaxInterfaces int `xml:"maximumNetworkInterfaces"`
}

type xmlEFAInfo struct {
	Max int `xml:"maximumEfaInterfaces"`
}

type xmlVCPU struct {
	VCPUs   int `xml:"defaultVCpus"`
	Cores   int `xml:"defaultCores"`
	Threads int `xml:"defaultThreadsPerCore"`
	// ValidCores and ValidThreads are what CpuOptions takes.
	ValidCores   []int `xml:"validCores>item"`
	ValidThreads []int `xml:"validThreadsPerCore>item"`
}

type xmlNetwork struct {
	Performance   string `xml:"networkPerformance"`
	MaxInterfaces int    `xml:"maximumNetworkInterfaces"`
	MaxCards      int    `xml:"maximumNetworkCards"`
	DefaultCard   int    `xml:"defaultNetworkCardIndex"`
	IPv4Addresses int    `xml:"ipv4AddressesPerInterface"`
	IPv6Addresses int    `xml:"ipv6AddressesPerInterface"`
	IPv6          bool   `xml:"ipv6Supported"`
	ENA           string `xml:"enaSupport"`
	EFA           bool   `xml:"efaSupported"`
	// EFAInfo and Cards are how many adapters and interfaces there can be.
	EFAInfo *xmlEFAInfo      `xml:"efaInfo"`
	Cards   []xmlNetworkCard `xml:"networkCards>item"`
}

type xmlGPUInfo struct {
	GPUs        []xmlGPU `xml:"gpus>item"`
	TotalMemory int      `xml:"totalGpuMemoryInMiB"`
}

type xmlGPU struct {
	Name         string `xml:"name"`
	Manufacturer string `xml:"manufacturer"`
	Count        int    `xml:"count"`
	MemoryMiB    int    `xml:"memoryInfo>sizeInMiB"`
}

// typeFilters are the simulated filters of
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html.
func typeFilters() filterTable[indexed[InstanceType]] {
	return filterTable[indexed[InstanceType]]{
		"bare-metal":                              field(func(*InstanceType) string { return "false" }),
		"burstable-performance-supported":         field(func(t *InstanceType) string { return strconv.FormatBool(t.Burstable) }),
		"current-generation":                      field(func(*InstanceType) string { return "true" }),
		"instance-type":                           field(func(t *InstanceType) string { return t.Name }),
		"memory-info.size-in-mib":                 field(func(t *InstanceType) string { return strconv.Itoa(t.MemoryMiB) }),
		"network-info.maximum-network-interfaces": field(func(t *InstanceType) string { return strconv.Itoa(t.MaxInterfaces) }),
		"processor-info.supported-architecture":   field(func(t *InstanceType) string { return t.Architecture }),
		"supported-virtualization-type":           field(func(*InstanceType) string { return "hvm" }),
		"vcpu-info.default-vcpus":                 field(func(t *InstanceType) string { return strconv.Itoa(t.VCPUs) }),
		"supported-usage-class":                   func(t indexed[InstanceType]) []string { return t.item.usageClasses() },
	}
}

func describeInstanceTypes(s *Server, _ *simulator.Exchange, p params) (reply, error) {
	for _, name := range p.strings("InstanceType") {
		if s.catalog.instanceType(name) == nil {
			return nil, fail("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
		}
	}
	selected, next, err := describe(p, index(s.catalog.InstanceTypes), resource[indexed[InstanceType]]{
		idList: "InstanceType", id: func(t indexed[InstanceType]) string { return t.item.Name },
		missing: "InvalidInstanceType", noun: "instance type", filters: typeFilters(),
		paging: paging{scope: "types", min: 5, max: 100, idsExclude: "InstanceType"},
		seq:    func(t indexed[InstanceType]) int { return t.index },
	})
	if err != nil {
		return nil, err
	}
	out := &describeTypesReply{NextToken: next}
	for _, t := range selected {
		out.Types = append(out.Types, describeType(t.item))
	}
	return out, nil
}

func describeType(t *InstanceType) xmlType {
	cores, threads := t.cores()
	out := xmlType{
		Name: t.Name, CurrentGeneration: true, UsageClasses: t.usageClasses(), RootDeviceTypes: []string{"ebs"},
		Virtualization: []string{"hvm"}, Hypervisor: strings.TrimSuffix(t.Hypervisor, "metal"),
		BareMetal: t.Hypervisor == "metal",
		BootModes: t.bootModes(), Strategies: t.strategies(), Architectures: []string{t.Architecture}, MemoryMiB: t.MemoryMiB,
		VCPU: xmlVCPU{VCPUs: t.VCPUs, Cores: cores, Threads: threads}, Burstable: t.Burstable,
		Network: xmlNetwork{
			Performance: "Up to 10 Gigabit", MaxInterfaces: t.MaxInterfaces, MaxCards: t.cards(), EFA: t.EFA > 0,
			IPv4Addresses: t.AddressesPerInterface,
			IPv6Addresses: t.AddressesPerInterface, IPv6: true, ENA: "required",
		},
	}
	for card := range t.cards() {
		out.Network.Cards = append(out.Network.Cards, xmlNetworkCard{Index: card, MaxInterfaces: max(t.MaxInterfaces/t.cards(), 1)})
	}
	if t.EFA > 0 {
		out.Network.EFAInfo = &xmlEFAInfo{Max: t.EFA}
	}
	if t.SEVSNP {
		out.Features = append(out.Features, "amd-sev-snp")
	}
	if t.NestedVirtualization {
		out.Features = append(out.Features, "nested-virtualization")
	}
	for n := 1; n <= cores; n++ {
		out.VCPU.ValidCores = append(out.VCPU.ValidCores, n)
	}
	for n := 1; n <= threads; n++ {
		out.VCPU.ValidThreads = append(out.VCPU.ValidThreads, n)
	}
	out.EBS = xmlEBS{LimitType: map[bool]string{true: "dedicated", false: "shared"}[t.Dedicated], Max: t.Attachments, Encryption: "supported"}
	if t.NoENA {
		out.Network.ENA = "unsupported"
	}
	if g := t.GPU; g != nil {
		out.GPU = &xmlGPUInfo{TotalMemory: g.Count * g.MemoryMiB, GPUs: []xmlGPU{{
			Name: g.Name, Manufacturer: g.Manufacturer, Count: g.Count, MemoryMiB: g.MemoryMiB,
		}}}
	}
	return out
}

func (t *InstanceType) cards() int { return max(t.NetworkCards, 1) }
