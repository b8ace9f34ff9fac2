package v1alpha1

import (
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// AWSMachineSpec is the desired state of one EC2 instance. All of it but providerID is fixed when
// the object is created: an instance is replaced, never changed.
// +kubebuilder:validation:XValidation:rule="!has(self.fallbackInstanceTypes) || !(self.instanceType in self.fallbackInstanceTypes)",message="instanceType is tried first anyway: remove it from fallbackInstanceTypes",fieldPath=".fallbackInstanceTypes"
// +kubebuilder:validation:XValidation:rule="!has(self.ami.ssmParameter) || !self.ami.ssmParameter.contains('arn:') || self.ami.ssmParameter.contains(':ssm:' + self.region + ':')",message="Systems Manager reads a parameter in its own region only: give the ARN of one in the region of the spec",fieldPath=".ami.ssmParameter"
// +kubebuilder:validation:XValidation:rule="!has(self.ami.id) || !self.ami.id.contains('arn:') || self.ami.id.contains(':ec2:' + self.region + ':') || self.ami.id.contains(':ssm:' + self.region + ':')",message="the ARN is of another region: give an image, or a parameter, in the region of the spec",fieldPath=".ami.id"
// +kubebuilder:validation:XValidation:rule="self.subnets.all(s, !has(s.id) || !s.id.startsWith('arn:') || s.id.contains(':ec2:' + self.region + ':'))",message="the ARN of a subnet is of another region: give subnets in the region of the spec",fieldPath=".subnets"
// +kubebuilder:validation:XValidation:rule="!has(self.securityGroupIDs) || self.securityGroupIDs.all(g, !g.startsWith('arn:') || g.contains(':ec2:' + self.region + ':'))",message="the ARN of a security group is of another region: give groups in the region of the spec",fieldPath=".securityGroupIDs"
// +kubebuilder:validation:XValidation:rule="!has(self.rootVolume) || !has(self.rootVolume.kmsKeyID) || !self.rootVolume.kmsKeyID.startsWith('arn:') || self.rootVolume.kmsKeyID.contains(':kms:' + self.region + ':')",message="the key is in another region: give a KMS key in the region of the spec",fieldPath=".rootVolume.kmsKeyID"
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, !has(v.kmsKeyID) || !v.kmsKeyID.startsWith('arn:') || v.kmsKeyID.contains(':kms:' + self.region + ':'))",message="the key of a volume is in another region: give a KMS key in the region of the spec",fieldPath=".volumes"
// +kubebuilder:validation:XValidation:rule="!has(self.extraInterfaces) || !has(self.publicIP) || !self.publicIP",message="EC2 gives no public IP address to an instance that is launched with several interfaces: remove publicIP or extraInterfaces",fieldPath=".publicIP"
// +kubebuilder:validation:XValidation:rule="!has(self.spot) || !has(self.marketType)",message="an instance is bought in one way: remove spot or marketType",fieldPath=".marketType"
// +kubebuilder:validation:XValidation:rule="!has(self.marketType) || self.marketType != 'CapacityBlock' || has(self.capacityReservation) && has(self.capacityReservation.id)",message="marketType CapacityBlock needs the ID of the Capacity Block: set capacityReservation.id",fieldPath=".marketType"
// +kubebuilder:validation:XValidation:rule="!has(self.spot) || !has(self.capacityReservation)",message="spot instances run in no Capacity Reservation: remove spot or capacityReservation",fieldPath=".capacityReservation"
// +kubebuilder:validation:XValidation:rule="!has(self.spot) || !has(self.placement) || !has(self.placement.hostID) && !has(self.placement.hostResourceGroupARN) && (!has(self.placement.tenancy) || self.placement.tenancy != 'host')",message="spot instances do not run on Dedicated Hosts: remove spot, or tenancy host and what names a host from placement",fieldPath=".placement"
// +kubebuilder:validation:XValidation:rule="has(self.placement) && has(self.placement.tenancy) && self.placement.tenancy == 'host' || ![[self.instanceType], has(self.fallbackInstanceTypes) ? self.fallbackInstanceTypes : []].exists(l, l.exists(t, t.startsWith('mac')))",message="EC2 runs Mac instances on Dedicated Hosts alone: allocate a host and set placement.tenancy to host, or choose another instance type",fieldPath=".placement"
// +kubebuilder:validation:XValidation:rule="!has(self.spot) || !has(self.terminationProtection) || !self.terminationProtection",message="EC2 protects no spot instances from termination: remove spot or terminationProtection",fieldPath=".terminationProtection"
type AWSMachineSpec struct {
	driverv1.MachineSpec `json:",inline"`

	// identityRef names the AWSIdentity with whose credentials AWS is called for this instance. That has to allow the namespace of this
	// object. Unset means the credentials of the provider's process, unless that runs with --require-identity.
	// +optional
	IdentityRef *driverv1.IdentityReference `json:"identityRef,omitempty"`

	// region is the AWS region that the instance runs in, for example eu-central-1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$')",message="give the code of a region in lower case, such as eu-central-1, without the letter of a zone"
	Region string `json:"region,omitempty"`

	// instanceType is the EC2 instance type, for example m5.large.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9-]+[.][a-z0-9-]+$')",message="give the name of an EC2 instance type in lower case, such as m5.large, without the prefix of another service"
	InstanceType string `json:"instanceType,omitempty"`

	// fallbackInstanceTypes are instance types that do as well, in the order in which they are tried
	// when EC2 has no capacity for instanceType in any of the subnets, or a quota for it is used up: at most 15, each once, and not
	// instanceType itself. They must be able to boot the same image; one that EC2 refuses for this spec is
	// left out. Unset means that the launch waits for capacity of instanceType. status.instanceType says
	// which one it has become.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9-]+[.][a-z0-9-]+$')",message="give the name of an EC2 instance type in lower case, such as m5.large, without the prefix of another service"
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x == y))",message="each fallback instance type is tried once: remove the repetition"
	FallbackInstanceTypes []string `json:"fallbackInstanceTypes,omitempty"`

	// ami is the machine image, by id or by a search.
	// +required
	AMI AMIReference `json:"ami,omitempty,omitzero"`

	// subnets are the subnets that the instance may be placed in, normally one for each
	// availability zone. The Machine's failure domain, when it has one, leaves only those in that
	// zone; among what is left, launches are spread, and a subnet whose zone has no capacity is
	// passed over for three minutes. All of them must be of one VPC, that of the security groups. One that is not
	// there, or not yet, is left out; the launch waits while none is there.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Subnets []SubnetReference `json:"subnets,omitempty"`

	// securityGroupIDs are security groups of the primary network interface, by ID or ARN, beside those of
	// securityGroupSelectors: at most 16. Unset, both of them, means the default security group of the VPC.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(arn:aws[a-z-]*:ec2:[a-z0-9-]+:[0-9]{12}:security-group/)?sg-[0-9a-f]+$')",message="give the ID of a security group (sg-...) or its ARN; groups are found by name with the filter group-name"
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`

	// securityGroupSelectors are searches for security groups of the primary network interface: all
	// groups that match one of them, beside those of securityGroupIDs. The launch waits while one of the
	// searches has no result. EC2 takes 5 groups for an interface unless the account's quota was raised.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	SecurityGroupSelectors []SecurityGroupSelector `json:"securityGroupSelectors,omitempty"`

	// iamInstanceProfile is the IAM instance profile, which gives the instance its role: its name, or
	// its ARN, for example arn:aws:iam::123456789012:instance-profile/node. It must be in the account
	// of the instance. Unset means that the instance has no role.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_+=,.@-]{1,128}$') || self.matches('^arn:aws[a-z-]*:iam::[0-9]{12}:instance-profile/([!-~]+/)?[a-zA-Z0-9_+=,.@-]{1,128}$')",message="give the name of an instance profile (not of a role), of at most 128 characters, or its ARN: arn:aws:iam::<account>:instance-profile/<name>"
	IAMInstanceProfile string `json:"iamInstanceProfile,omitempty"`

	// keyName is the name of the EC2 key pair for SSH: not its ID. Unset means no key.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="!self.matches('^key-[0-9a-f]{17}$') && !self.startsWith('arn:') && !self.startsWith('ssh-')",message="EC2 finds a key pair by its name when it launches: give the name, not the ID, the ARN or the key itself"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]([ -~]*[!-~])?$')",message="the name of a key pair has ASCII characters, and no space or line break at its ends: remove what else there is"
	KeyName string `json:"keyName,omitempty"`

	// publicIP is whether the primary network interface gets a public IPv4 address. Unset means as its subnet
	// says. EC2 gives none to instances with extraInterfaces.
	// +optional
	PublicIP *bool `json:"publicIP,omitempty"`

	// ipv6 gives the primary network interface IPv6 addresses, in a subnet that has an IPv6 block. Unset
	// means as the subnet says.
	// +optional
	IPv6 *IPv6 `json:"ipv6,omitempty"`

	// interfaceType of the primary network interface: interface, or efa for an Elastic Fabric Adapter on
	// instance types that have one, with a security group that allows all traffic from and to itself.
	// Unset means interface.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != 'efa-only'",message="the primary interface carries the instance's IP address: choose efa, and efa-only in extraInterfaces"
	InterfaceType InterfaceType `json:"interfaceType,omitempty"`

	// extraInterfaces are network interfaces beside the primary one, created and deleted with the
	// instance. How many there can be, and on which network cards, depends on the instance type.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=63
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.deviceIndex) || self.exists_one(b, has(b.deviceIndex) && b.deviceIndex == a.deviceIndex && b.networkCardIndex == a.networkCardIndex))",message="two interfaces have the same deviceIndex on one network card: change one of them"
	ExtraInterfaces []ExtraInterface `json:"extraInterfaces,omitempty"`

	// sourceDestCheck is whether EC2's source/destination check is on: it drops what is neither from nor to an
	// address of the instance. false is for instances that route or translate the traffic of others, such as pods without an overlay.
	// It holds for all network interfaces that the instance is launched with. EC2 takes it only after
	// the launch: until then, and while EC2 refuses it, the condition Ready has the reason
	// InstanceNotConfigured. Later changes by others are reverted. Unset means as it is: EC2 checks.
	// +optional
	SourceDestCheck *bool `json:"sourceDestCheck,omitempty"`

	// rootVolume changes the root volume. Unset means as the image says.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || !(self.type in ['st1', 'sc1'])",message="no instance boots from the types st1 and sc1: choose gp3, gp2, io1, io2 or standard",fieldPath=".type"
	RootVolume *Volume `json:"rootVolume,omitempty"`

	// volumes are further volumes, created and deleted with the instance. No two may have names of the same device: /dev/sdf,
	// sdf, /dev/xvdf and xvdf are one.
	// +optional
	// +listType=map
	// +listMapKey=device
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=25
	// +kubebuilder:validation:XValidation:rule="self.all(v, self.exists_one(w, w.device.replace('/dev/', '').replace('xvd', 'sd') == v.device.replace('/dev/', '').replace('xvd', 'sd')))",message="two volumes have names of the same device (/dev/sdf, sdf, /dev/xvdf and xvdf are one): give each a device with a letter of its own"
	Volumes []DataVolume `json:"volumes,omitempty"`

	// tags are put on the instance, its volumes and its network interface. The tags that the provider sets or finds instances
	// by (Name, MachineName, kubernetes.io/cluster/… and infrastructure.millwright.dev/…) cannot be given here, nor those by
	// which other controllers find instances that they may end (sigs.k8s.io/cluster-api-provider-aws/…, kubernetes.io/role/…,
	// karpenter.sh/…), nor those of AWS (aws:…).
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=40
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) >= 1 && size(k) <= 128 && size(self[k]) <= 256)",message="a tag key has 1 to 128 characters and a value at most 256"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['Name', 'MachineName']) && !k.lowerAscii().startsWith('aws:') && !k.startsWith('kubernetes.io/cluster/') && !k.startsWith('infrastructure.millwright.dev/'))",message="the tags Name, MachineName and those that begin with kubernetes.io/cluster/ or infrastructure.millwright.dev/ are set by the provider, and those that begin with aws: are reserved by AWS: remove them from tags"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('sigs.k8s.io/cluster-api-provider-aws/') && !k.startsWith('kubernetes.io/role/') && !k.startsWith('karpenter.sh/'))",message="tags that begin with sigs.k8s.io/cluster-api-provider-aws/, kubernetes.io/role/ or karpenter.sh/ mark instances of other controllers, which may end them: remove them from tags"
	Tags map[string]TagValue `json:"tags,omitempty"`

	// spot asks for spot capacity, which AWS may take back at any time. Unset means on-demand.
	// +optional
	Spot *Spot `json:"spot,omitempty"`

	// marketType is how the instance is bought: OnDemand, or CapacityBlock for one of a Capacity Block
	// for ML that has been bought before, whose ID is in capacityReservation.id. Unset means OnDemand;
	// spot capacity is asked for by spot instead. EC2 ends the instances of a Capacity Block before the
	// block ends.
	// +optional
	MarketType MarketType `json:"marketType,omitempty"`

	// capacityReservation is the reserved capacity that the instance runs in. Unset means any open
	// Capacity Reservation that fits, else capacity on demand.
	// +optional
	CapacityReservation *CapacityReservation `json:"capacityReservation,omitempty"`

	// placement sets beside which instances, and on whose hardware, the instance runs. Unset means
	// hardware that AWS chooses, or the tenancy of the VPC.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// cpuOptions change what the instance's processors do. Unset means as the instance type has it.
	// +optional
	CPUOptions *CPUOptions `json:"cpuOptions,omitempty"`

	// terminationProtection protects the instance from termination by EC2's API or console
	// (DisableApiTermination). Default: false. It does not keep the instance from shutting itself down, and
	// spot instances cannot have it. Deleting the Machine disables the protection that the spec asks for and
	// terminates the instance. Protection that another user has enabled stays: the condition Ready has the
	// reason DeletionBlocked then.
	// +optional
	TerminationProtection *bool `json:"terminationProtection,omitempty"`

	// metadata sets how the instance metadata service answers.
	// +optional
	// +kubebuilder:default={tokens: Required, hopLimit: 1}
	Metadata InstanceMetadata `json:"metadata,omitempty,omitzero"`
}

// TagValue is the value of a tag.
// +kubebuilder:validation:MaxLength=256
type TagValue string
