package v1alpha1

// InterfaceType is a type of network interface, in EC2's words.
// +kubebuilder:validation:Enum=interface;efa;efa-only
type InterfaceType string

const (
	// InterfaceTypePlain is an ordinary network interface.
	InterfaceTypePlain InterfaceType = "interface"
	// InterfaceTypeEFA is an Elastic Fabric Adapter that carries IP as well.
	InterfaceTypeEFA InterfaceType = "efa"
	// InterfaceTypeEFAOnly is an Elastic Fabric Adapter without IP addresses.
	InterfaceTypeEFAOnly InterfaceType = "efa-only"
)

// SecurityGroupSelector names all security groups that match filters.
type SecurityGroupSelector struct {
	// filters of DescribeSecurityGroups, for example {name: "tag:role", values: [nodes]}. Unless one
	// names a vpc-id, only groups of the VPC of the instance's subnet are searched.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Filters []Filter `json:"filters,omitempty"`
}

// ExtraInterface is a network interface beside the primary one. It is created and deleted with the
// instance.
// +kubebuilder:validation:XValidation:rule="self.networkCardIndex != 0 || !has(self.deviceIndex) || self.deviceIndex != 0",message="device 0 of network card 0 is the primary interface: set another deviceIndex, or none",fieldPath=".deviceIndex"
type ExtraInterface struct {
	// subnet that the interface is in: by id, or the first one by ID that matches filters, in the zone of
	// the instance. The instance goes only to zones that have one. Unset means the instance's subnet.
	// +optional
	Subnet *SubnetReference `json:"subnet,omitempty"`

	// securityGroupIDs are the security groups of the interface. Unset means those of the primary one.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(arn:aws[a-z-]*:ec2:[a-z0-9-]+:[0-9]{12}:security-group/)?sg-[0-9a-f]+$')",message="give the ID of a security group (sg-...) or its ARN; groups are found by name with the filter group-name"
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`

	// interfaceType is interface, efa for an Elastic Fabric Adapter, or efa-only for one without IP
	// addresses, which uses up none of the subnet. A security group of an EFA must allow all traffic
	// from and to itself. Unset means interface.
	// +optional
	InterfaceType InterfaceType `json:"interfaceType,omitempty"`

	// networkCardIndex is the network card, of those of the instance type, counted from 0. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	NetworkCardIndex *int32 `json:"networkCardIndex,omitempty"`

	// deviceIndex is the place among the interfaces of the card, each of which has another one. Unset
	// means the lowest from 1 that is free, in the order of the list.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	DeviceIndex *int32 `json:"deviceIndex,omitempty"`
}

// IPv6 gives the primary network interface IPv6 addresses, from the subnet's block.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.count) || has(self.prefixCount)",message="how many? set count for addresses, or prefixCount for prefixes"
// +kubebuilder:validation:XValidation:rule="!has(self.primary) || !self.primary || has(self.count)",message="the primary IPv6 address is one of those that count asks for: set count",fieldPath=".primary"
type IPv6 struct {
	// count is how many addresses the interface gets, of which the Machine shows all. Unset means as the
	// subnet says (assign on creation).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	Count *int32 `json:"count,omitempty"`

	// primary makes the first address the primary one, which the instance then keeps, as a target of a load
	// balancer needs it. Default: false.
	// +optional
	Primary *bool `json:"primary,omitempty"`

	// prefixCount is how many prefixes of /80 are delegated to the interface, for the addresses of pods.
	// Only instance types on Nitro take them. Unset means none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	PrefixCount *int32 `json:"prefixCount,omitempty"`
}
