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
	// id of the image.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^ami-[0-9a-f]+$`
	ID string `json:"id,omitempty"`

	// ssmParameter is the name or the ARN of a parameter of AWS Systems Manager whose value is the ID of
	// the image, for example
	// /aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id. It may
	// end in :<version> or :<label>. It is read in the instance's region at the launch, and again after
	// five minutes, so that a new value is used by the next machines. A SecureString is not decrypted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(arn:aws[a-z-]*:ssm:[a-z0-9-]+:([0-9]{12})?:parameter/|/)?[a-zA-Z0-9_.-]+(/[a-zA-Z0-9_.-]+)*(:[a-zA-Z0-9_.-]+)?$`
	SSMParameter string `json:"ssmParameter,omitempty"`

	// filters of DescribeImages, for example {name: name, values: ["millwright-node-v1.36.*"]}.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Filters []Filter `json:"filters,omitempty"`

	// owners whose images are searched: account IDs, self, amazon or aws-marketplace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:Pattern=`^([0-9]{12}|self|amazon|aws-marketplace)$`
	Owners []string `json:"owners,omitempty"`
}

// SubnetReference names subnets: one by id, or all that match filters.
// +kubebuilder:validation:XValidation:rule="has(self.id) != has(self.filters)",message="exactly one of id and filters must be set"
type SubnetReference struct {
	// id of the subnet.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^subnet-[0-9a-f]+$`
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

	// snapshotID is the EBS snapshot that the volume is created from, for example snap-0123456789abcdef0.
	// Unset means the image's own for the root volume, and an empty volume otherwise. A root volume
	// must be made from a snapshot of a bootable volume of the same architecture and platform.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^snap-[0-9a-f]+$`
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

	// kmsKeyID is the KMS key (ID, alias or ARN) that encrypts the volume. Unset means the
	// account's default key for EBS.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	KMSKeyID string `json:"kmsKeyID,omitempty"`
}

// DataVolume is a volume beside the root volume. It is deleted with the instance.
// +kubebuilder:validation:XValidation:rule="has(self.sizeGiB) || has(self.snapshotID)",message="how large is the volume? set sizeGiB, or snapshotID to make it from a snapshot"
type DataVolume struct {
	// device is the name under which the volume is attached, for example /dev/sdf: /dev/sd[b-z] or
	// /dev/xvd[b-z]. Instance types of the Nitro System show it as /dev/nvme*n1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^(/dev/)?(sd[b-z][0-9]*|xvd[b-z][a-z]?)$`
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
