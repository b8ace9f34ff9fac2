package v1alpha1

// MarketType is how an instance is bought.
// +kubebuilder:validation:Enum=OnDemand;CapacityBlock
type MarketType string

const (
	// MarketTypeOnDemand is paid for while it runs.
	MarketTypeOnDemand MarketType = "OnDemand"
	// MarketTypeCapacityBlock runs in a Capacity Block for ML, which has been paid for before.
	MarketTypeCapacityBlock MarketType = "CapacityBlock"
)

// CapacityReservationPreference is what an instance does with Capacity Reservations, in EC2's words.
// +kubebuilder:validation:Enum=open;none;capacity-reservations-only
type CapacityReservationPreference string

const (
	// CapacityReservationOpen takes an open Capacity Reservation that fits, else capacity on demand.
	CapacityReservationOpen CapacityReservationPreference = "open"
	// CapacityReservationNone leaves Capacity Reservations to others.
	CapacityReservationNone CapacityReservationPreference = "none"
	// CapacityReservationOnly runs in a Capacity Reservation or not at all.
	CapacityReservationOnly CapacityReservationPreference = "capacity-reservations-only"
)

// CapacityReservation is the reserved capacity that an instance runs in: one by id, those of a
// resource group, or by preference whichever fits.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !has(self.resourceGroupARN)",message="an instance runs in one reservation or in those of one group: remove id or resourceGroupARN"
// +kubebuilder:validation:XValidation:rule="!has(self.preference) || self.preference == 'capacity-reservations-only' || !has(self.id) && !has(self.resourceGroupARN)",message="with id or resourceGroupARN the only preference that EC2 takes is capacity-reservations-only: remove preference, or what it contradicts"
type CapacityReservation struct {
	// id of one Capacity Reservation or Capacity Block, for example cr-0123456789abcdef0, or its ARN. It must be in
	// the zone of the subnet, so name subnets of that zone only. The launch waits while it is full.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(arn:aws[a-z-]*:ec2:[a-z0-9-]+:[0-9]{12}:capacity-reservation/)?cr-[0-9a-f]+$')",message="give the ID of a Capacity Reservation (cr-...) or its ARN; a resource group goes into resourceGroupARN"
	ID string `json:"id,omitempty"`

	// resourceGroupARN is the resource group of Capacity Reservations of which one is used. When none
	// fits, the instance runs on demand, unless preference is capacity-reservations-only.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:[0-9]{12}:group/.+$`
	ResourceGroupARN string `json:"resourceGroupARN,omitempty"`

	// preference among reservations that are not named: open takes one that fits, else capacity on
	// demand; none takes no reserved capacity; capacity-reservations-only takes nothing else. Unset
	// means open.
	// +optional
	Preference CapacityReservationPreference `json:"preference,omitempty"`
}

// Tenancy is who else has instances on the hardware, in EC2's words.
// +kubebuilder:validation:Enum=default;dedicated;host
type Tenancy string

const (
	// TenancyDefault shares hardware with other accounts.
	TenancyDefault Tenancy = "default"
	// TenancyDedicated runs on hardware of this account alone.
	TenancyDedicated Tenancy = "dedicated"
	// TenancyHost runs on a Dedicated Host, which the account has allocated.
	TenancyHost Tenancy = "host"
)

// HostAffinity is whether an instance returns to its Dedicated Host after it was stopped.
// +kubebuilder:validation:Enum=default;host
type HostAffinity string

// Placement sets beside which instances, and on whose hardware, an instance runs.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.partition) || has(self.groupName)",message="a partition is one of a placement group: set groupName as well",fieldPath=".partition"
// +kubebuilder:validation:XValidation:rule="!has(self.hostID) || !has(self.hostResourceGroupARN)",message="an instance runs on one host or on those of one group: remove hostID or hostResourceGroupARN"
// +kubebuilder:validation:XValidation:rule="!has(self.hostID) && !has(self.hostResourceGroupARN) && !has(self.affinity) || has(self.tenancy) && self.tenancy == 'host'",message="hostID, hostResourceGroupARN and affinity are of Dedicated Hosts: set tenancy to host, or remove them"
// +kubebuilder:validation:XValidation:rule="!has(self.groupName) || !has(self.tenancy) || self.tenancy != 'host'",message="EC2 puts no instances on Dedicated Hosts into placement groups: remove groupName, or choose another tenancy"
type Placement struct {
	// groupName is the placement group, by name, ID or ARN. It must exist: it is not created. A cluster group is in one
	// zone; a spread group takes at most seven instances in a zone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('arn:') && size(self) <= 255 || self.matches('^arn:aws[a-z-]*:ec2:[a-z0-9-]+:[0-9]{12}:placement-group/[ -~]{1,255}$')",message="give the name of a placement group, its ID (pg-...) or its ARN"
	GroupName string `json:"groupName,omitempty"`

	// partition is the number of the partition, from 1 to 7, of a group with the strategy partition.
	// Unset means that EC2 spreads the instances over the group's partitions.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7
	Partition *int32 `json:"partition,omitempty"`

	// tenancy is who else has instances on the hardware: default, other accounts; dedicated, none; host,
	// a Dedicated Host of the account, which Mac instance types require. Unset means the tenancy of the VPC.
	// +optional
	Tenancy Tenancy `json:"tenancy,omitempty"`

	// hostID is the Dedicated Host, for example h-0123456789abcdef0, or its ARN, with tenancy host. Unset means any
	// that takes instances without being named (auto-placement).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(arn:aws[a-z-]*:ec2:[a-z0-9-]+:[0-9]{12}:dedicated-host/)?h-[0-9a-f]+$')",message="give the ID of a Dedicated Host (h-...) or its ARN; a host resource group goes into hostResourceGroupARN"
	HostID string `json:"hostID,omitempty"`

	// hostResourceGroupARN is the host resource group that chooses the Dedicated Host, with tenancy host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:[0-9]{12}:group/.+$`
	HostResourceGroupARN string `json:"hostResourceGroupARN,omitempty"`

	// affinity is host if a stopped instance is to start on the same Dedicated Host again, with tenancy
	// host; default if on any. Unset means default.
	// +optional
	Affinity HostAffinity `json:"affinity,omitempty"`
}

// CPUOptions change what an instance's processors do.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.coreCount) == has(self.threadsPerCore)",message="EC2 takes coreCount and threadsPerCore together: set both, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.amdSevSnp) || !self.amdSevSnp || !has(self.nestedVirtualization) || !self.nestedVirtualization",message="amdSevSnp is of AMD processors and nestedVirtualization of Intel's: remove one"
type CPUOptions struct {
	// amdSevSnp encrypts the instance's memory with AMD SEV-SNP, on instance types that have it (m6a, c6a,
	// r6a in some regions) and with an image that boots by UEFI. It costs extra. Default: false.
	// +optional
	AMDSEVSNP *bool `json:"amdSevSnp,omitempty"`

	// coreCount is how many cores the instance has, of those of its type: fewer cost the same, and save
	// licences. Only together with threadsPerCore. Unset means all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	CoreCount *int32 `json:"coreCount,omitempty"`

	// threadsPerCore is 1, which switches simultaneous multithreading off, or 2. Only together with
	// coreCount.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2
	ThreadsPerCore *int32 `json:"threadsPerCore,omitempty"`

	// nestedVirtualization lets the instance run virtual machines of its own, on instance types that can
	// (c8i, m8i, r8i and their flex variants). Default: false.
	// +optional
	NestedVirtualization *bool `json:"nestedVirtualization,omitempty"`
}
