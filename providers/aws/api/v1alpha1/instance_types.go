package v1alpha1

// Filter narrows a search in EC2, as the filters of its Describe calls do.
type Filter struct {
	// name of the filter, for example name, architecture or tag:team.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// values of which one must match. They are case-sensitive; * stands for any characters and
	// ? for one.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	Values []string `json:"values,omitempty"`
}

// AMIReference names a machine image: by id, by a parameter of Systems Manager that holds the id, or by
// filters among the images of given owners, of which the newest available one is taken. Unless a
// filter names an architecture, only images that the instance type can boot are searched.
// +kubebuilder:validation:XValidation:rule="[has(self.id), has(self.ssmParameter), has(self.filters)].filter(x, x).size() == 1",message="exactly one of id, ssmParameter and filters must be set"
// +kubebuilder:validation:XValidation:rule="has(self.filters) == has(self.owners)",message="owners must be set with filters, and only then: a search without owners finds images that anybody published"
type AMIReference struct {
	// id of the image, its ARN, or resolve:ssm: or ssm: with what ssmParameter takes, as in launch templates and in kOps.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(arn:aws[a-z-]*:ec2:[a-z0-9-]+:([0-9]{12})?:image/)?ami-[0-9a-f]+$') || self.matches('^(resolve:)?ssm:(arn:aws[a-z-]*:ssm:[a-z0-9-]+:([0-9]{12})?:parameter/|/)?[a-zA-Z0-9_.-]+(/[a-zA-Z0-9_.-]+)*(:[a-zA-Z0-9_.-]+)?$')",message="give the ID of an image (ami-...), its ARN, or resolve:ssm:<parameter>; images are found by name with filters"
	ID string `json:"id,omitempty"`

	// ssmParameter is the name or the ARN of a parameter of AWS Systems Manager whose value is the ID of
	// the image, with or without resolve:ssm: before it, for example
	// /aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id. It may
	// end in :<version> or :<label>. It is read in the instance's region at the launch, and again after
	// five minutes, so that a new value is used by the next machines. A SecureString is not decrypted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^((resolve:)?ssm:)?(arn:aws[a-z-]*:ssm:[a-z0-9-]+:([0-9]{12})?:parameter/|/)?[a-zA-Z0-9_.-]+(/[a-zA-Z0-9_.-]+)*(:[a-zA-Z0-9_.-]+)?$`
	SSMParameter string `json:"ssmParameter,omitempty"`

	// filters of DescribeImages, for example {name: name, values: ["millwright-node-v1.36.*"]}.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Filters []Filter `json:"filters,omitempty"`

	// owners whose images are searched: account IDs, self, amazon, aws-marketplace or aws-backup-vault.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:Pattern=`^([0-9]{12}|[0-9]{4}-[0-9]{4}-[0-9]{4}|self|amazon|aws-marketplace|aws-backup-vault)$`
	Owners []string `json:"owners,omitempty"`
}

// SubnetReference names subnets: one by id, or all that match filters.
// +kubebuilder:validation:XValidation:rule="has(self.id) != has(self.filters)",message="exactly one of id and filters must be set"
type SubnetReference struct {
	// id of the subnet, or its ARN.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(arn:aws[a-z-]*:ec2:[a-z0-9-]+:[0-9]{12}:subnet/)?subnet-[0-9a-f]+$')",message="give the ID of a subnet (subnet-...) or its ARN; subnets are found by name with the filter tag:Name"
	ID string `json:"id,omitempty"`

	// filters of DescribeSubnets, for example {name: "tag:role", values: [nodes]}.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Filters []Filter `json:"filters,omitempty"`
}

// VolumeType is a type of EBS volume.
// +kubebuilder:validation:Enum=gp2;gp3;io1;io2;st1;sc1;standard
type VolumeType string

// Volume describes an EBS volume. What is unset is left to the image or to EC2.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.iops) || (has(self.type) && self.type in ['gp3', 'io1', 'io2'])",message="iops can be set for the types gp3, io1 and io2 only"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || !(self.type in ['io1', 'io2']) || has(self.iops)",message="the types io1 and io2 need iops"
// +kubebuilder:validation:XValidation:rule="!has(self.throughputMiBps) || (has(self.type) && self.type == 'gp3')",message="throughputMiBps can be set for the type gp3 only"
// +kubebuilder:validation:XValidation:rule="!has(self.sizeGiB) || !has(self.type) || self.sizeGiB <= (self.type == 'standard' ? 1024 : self.type in ['gp3', 'io2'] ? 65536 : 16384)",message="the volume is larger than EC2 makes one of its type: at most 1,024 GiB of standard, 16,384 GiB of gp2, io1, st1 and sc1, 65,536 GiB of gp3 and io2",fieldPath=".sizeGiB"
// +kubebuilder:validation:XValidation:rule="!has(self.sizeGiB) || !has(self.type) || self.sizeGiB >= (self.type in ['st1', 'sc1'] ? 125 : self.type in ['io1', 'io2'] ? 4 : 1)",message="the volume is smaller than EC2 makes one of its type: at least 4 GiB of io1 and io2, 125 GiB of st1 and sc1",fieldPath=".sizeGiB"
// +kubebuilder:validation:XValidation:rule="!has(self.iops) || !has(self.type) || self.iops >= (self.type == 'gp3' ? 3000 : 100) && self.iops <= (self.type == 'gp3' ? 80000 : self.type == 'io1' ? 64000 : 256000)",message="EC2 has 3,000 to 80,000 IOPS for gp3, 100 to 64,000 for io1 and 100 to 256,000 for io2: choose a number within these",fieldPath=".iops"
// +kubebuilder:validation:XValidation:rule="!has(self.iops) || !has(self.type) || !has(self.sizeGiB) || self.type == 'gp3' && self.iops <= 3000 || self.iops <= self.sizeGiB * (self.type == 'gp3' ? 500 : self.type == 'io1' ? 50 : 1000)",message="EC2 has at most 500 IOPS for each GiB of gp3, 50 of io1 and 1,000 of io2: lower iops, or raise sizeGiB",fieldPath=".iops"
// +kubebuilder:validation:XValidation:rule="!has(self.throughputMiBps) || self.throughputMiBps * 4 <= (has(self.iops) ? self.iops : 3000)",message="EC2 has at most 0.25 MiB/s for each of the IOPS of gp3, of which there are 3,000 by default: lower throughputMiBps, or raise iops",fieldPath=".throughputMiBps"
// +kubebuilder:validation:XValidation:rule="!has(self.kmsKeyID) || (has(self.encrypted) && self.encrypted)",message="kmsKeyID needs encrypted: true"
type Volume struct {
	// sizeGiB is the size in GiB: at least that of the snapshot that the volume is created from. Unset
	// means the size of the snapshot, of the image's own for the root volume.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	SizeGiB *int32 `json:"sizeGiB,omitempty"`

	// type of the volume, for example gp3. Unset means as the image or EC2 says.
	// +optional
	Type VolumeType `json:"type,omitempty"`

	// snapshotID is the EBS snapshot that the volume is created from, for example snap-0123456789abcdef0, or its ARN.
	// Unset means the image's own for the root volume, and an empty volume otherwise. A root volume
	// must be made from a snapshot of a bootable volume of the same architecture and platform.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(arn:aws[a-z-]*:ec2:[a-z0-9-]+:([0-9]{12})?:snapshot/)?snap-[0-9a-f]+$')",message="give the ID of a snapshot (snap-...) or its ARN"
	SnapshotID string `json:"snapshotID,omitempty"`

	// iops is the number of operations per second that is paid for (gp3, io1, io2).
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=256000
	IOPS *int32 `json:"iops,omitempty"`

	// throughputMiBps is the throughput in MiB/s that is paid for (gp3).
	// +optional
	// +kubebuilder:validation:Minimum=125
	// +kubebuilder:validation:Maximum=2000
	ThroughputMiBps *int32 `json:"throughputMiBps,omitempty"`

	// encrypted is whether the volume is encrypted. Unset means as its snapshot is, else as the
	// account's default says. A volume from an encrypted snapshot is always encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`

	// kmsKeyID is the KMS key that encrypts the volume: its ID, alias/<name>, or the ARN of either. EC2 reports a key
	// that it cannot use only after it has accepted the launch. Unset means the account's default key for EBS.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:)?alias/[a-zA-Z0-9/_-]+$') || self.matches('^((arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:)?key/)?([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})$')",message="give the ID of a KMS key, alias/<name>, or the ARN of either"
	KMSKeyID string `json:"kmsKeyID,omitempty"`
}

// DataVolume is a volume beside the root volume. It is deleted with the instance.
// +kubebuilder:validation:XValidation:rule="has(self.sizeGiB) || has(self.snapshotID)",message="how large is the volume? set sizeGiB, or snapshotID to make it from a snapshot"
type DataVolume struct {
	// device is the name under which the volume is attached, for example /dev/sdf: /dev/sd[b-z], /dev/xvd[b-z] or
	// /dev/xvd[a-d][a-z]. Instance types of the Nitro System show it as /dev/nvme*n1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/dev/)?(sd[b-z]([1-9]|1[0-5])?|xvd[b-z]|xvd[a-d][a-z])$')",message="EC2 has no such device name for a further volume: choose one of /dev/sd[b-z], /dev/xvd[b-z] and /dev/xvd[a-d][a-z]"
	Device string `json:"device,omitempty"`

	Volume `json:",inline"`
}

// Spot asks for spot capacity. Instances are one-time requests and are terminated on interruption.
type Spot struct {
	// maxPrice is the most to pay, in US dollars for an hour, for example "0.05". Unset means the
	// on-demand price, which is what AWS advises.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="EC2 sells no capacity for 0: give the most to pay for an hour, or remove maxPrice to pay the price on demand"
	MaxPrice string `json:"maxPrice,omitempty"`
}

// MetadataTokens is whether the metadata service answers requests without a session token.
// +kubebuilder:validation:Enum=Required;Optional
type MetadataTokens string

const (
	// MetadataTokensRequired allows requests with a session token only (IMDSv2).
	MetadataTokensRequired MetadataTokens = "Required"
	// MetadataTokensOptional allows requests without a token too (IMDSv1).
	MetadataTokensOptional MetadataTokens = "Optional"
)

// InstanceMetadata sets how the instance metadata service answers.
// +kubebuilder:validation:MinProperties=1
type InstanceMetadata struct {
	// tokens is whether the instance metadata service requires session tokens. Default: Required (IMDSv2 only).
	// +optional
	// +kubebuilder:default=Required
	Tokens MetadataTokens `json:"tokens,omitempty"`

	// hopLimit is how many network hops an answer may travel. 1, the default, keeps it from pods
	// that are not in the host network; they need 2.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	HopLimit *int32 `json:"hopLimit,omitempty"`
}
