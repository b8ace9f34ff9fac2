package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// AWSMachineSpec is the desired state of one EC2 instance. All of it but providerID is fixed when
// the object is created: an instance is replaced, never changed.
type AWSMachineSpec struct {
	driverv1.MachineSpec `json:",inline"`

	// region is the AWS region that the instance runs in, for example eu-central-1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$`
	Region string `json:"region,omitempty"`

	// instanceType is the EC2 instance type, for example m5.large.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+\.[a-z0-9-]+$`
	InstanceType string `json:"instanceType,omitempty"`

	// ami is the machine image, by id or by a search.
	// +required
	AMI AMIReference `json:"ami,omitempty,omitzero"`

	// subnets are the subnets that the instance may be placed in, normally one for each
	// availability zone. The Machine's failure domain, when it has one, leaves only those in that
	// zone; among what is left, launches are spread, and a subnet whose zone has no capacity is
	// passed over for a while.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Subnets []SubnetReference `json:"subnets,omitempty"`

	// securityGroupIDs are the security groups of the primary network interface. Empty means the
	// default security group of the VPC.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^sg-[0-9a-f]+$`
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`

	// iamInstanceProfile is the name of the IAM instance profile, which gives the instance its role.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[\w+=,.@-]+$`
	IAMInstanceProfile string `json:"iamInstanceProfile,omitempty"`

	// keyName is the name of the EC2 key pair for SSH. Empty means no key.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	KeyName string `json:"keyName,omitempty"`

	// publicIP returns whether the instance gets a public IPv4 address. Unset means as its subnet says.
	// +optional
	PublicIP *bool `json:"publicIP,omitempty"`

	// rootVolume changes the root volume. Unset means as the image says.
	// +optional
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

	// metadata sets how the instance metadata service answers.
	// +optional
	// +kubebuilder:default={tokens: Required, hopLimit: 1}
	Metadata InstanceMetadata `json:"metadata,omitempty,omitzero"`
}

// TagValue is the value of a tag.
// +kubebuilder:validation:MaxLength=256
type TagValue string

// AWSMachineStatus is the observed state of one EC2 instance.
type AWSMachineStatus struct {
	driverv1.MachineStatus `json:",inline"`
}

// AWSMachine is one EC2 instance, owned by a Machine.
//
// The launch is made idempotent by a client token, which is written to the annotation
// infrastructure.millwright.dev/launch before EC2 is called (an annotation, because clusterctl
// move carries annotations and drops status).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec.providerID) || has(self.spec.providerID) || has(self.status) && !self.status.ready && has(self.status.instanceState) && self.status.instanceState == 'Terminated'",message="spec.providerID cannot be removed, unless the instance has ended before it ran"
// +kubebuilder:resource:path=awsmachines,scope=Namespaced,categories={cluster-api,millwright},shortName=awsm
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`,description="Cluster of the machine"
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.status.instanceID`,description="EC2 instance ID"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.instanceType`,description="EC2 instance type"
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.failureDomain`,description="Availability zone"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.instanceState`,description="State of the instance"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the instance runs"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is or is not ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type AWSMachine struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the instance.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.region == oldSelf.region",message="region is immutable"
	// +kubebuilder:validation:XValidation:rule="self.instanceType == oldSelf.instanceType",message="instanceType is immutable"
	// +kubebuilder:validation:XValidation:rule="self.ami == oldSelf.ami",message="ami is immutable"
	// +kubebuilder:validation:XValidation:rule="self.subnets == oldSelf.subnets",message="subnets is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.securityGroupIDs) == has(oldSelf.securityGroupIDs) && (!has(self.securityGroupIDs) || self.securityGroupIDs == oldSelf.securityGroupIDs)",message="securityGroupIDs is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.iamInstanceProfile) == has(oldSelf.iamInstanceProfile) && (!has(self.iamInstanceProfile) || self.iamInstanceProfile == oldSelf.iamInstanceProfile)",message="iamInstanceProfile is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.keyName) == has(oldSelf.keyName) && (!has(self.keyName) || self.keyName == oldSelf.keyName)",message="keyName is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.publicIP) == has(oldSelf.publicIP) && (!has(self.publicIP) || self.publicIP == oldSelf.publicIP)",message="publicIP is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.rootVolume) == has(oldSelf.rootVolume) && (!has(self.rootVolume) || self.rootVolume == oldSelf.rootVolume)",message="rootVolume is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.volumes) == has(oldSelf.volumes) && (!has(self.volumes) || self.volumes == oldSelf.volumes)",message="volumes is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.tags) == has(oldSelf.tags) && (!has(self.tags) || self.tags == oldSelf.tags)",message="tags is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.spot) == has(oldSelf.spot) && (!has(self.spot) || self.spot == oldSelf.spot)",message="spot is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.metadata) == has(oldSelf.metadata) && (!has(self.metadata) || self.metadata == oldSelf.metadata)",message="metadata is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.userDataCompression) == has(oldSelf.userDataCompression) && (!has(self.userDataCompression) || self.userDataCompression == oldSelf.userDataCompression)",message="userDataCompression is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.launchTimeoutSeconds) == has(oldSelf.launchTimeoutSeconds) && (!has(self.launchTimeoutSeconds) || self.launchTimeoutSeconds == oldSelf.launchTimeoutSeconds)",message="launchTimeoutSeconds is immutable"
	Spec AWSMachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state of the instance.
	// +optional
	Status AWSMachineStatus `json:"status,omitempty,omitzero"`
}

// AWSMachineList is a list of AWSMachines.
//
// +kubebuilder:object:root=true
type AWSMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AWSMachine `json:"items"`
}

// CommonSpec returns the part of the spec that every provider's kind shares.
func (m *AWSMachine) CommonSpec() *driverv1.MachineSpec { return &m.Spec.MachineSpec }

// CommonStatus returns the part of the status that every provider's kind shares.
func (m *AWSMachine) CommonStatus() *driverv1.MachineStatus { return &m.Status.MachineStatus }
