package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// ExampleMachineSpec is the desired state of one machine. All of it but providerID is fixed when the object is created: a machine is
// replaced, never changed.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fallbackMachineTypes) || !(self.machineType in self.fallbackMachineTypes)",message="fallbackMachineTypes has the value of machineType: remove it there"
type ExampleMachineSpec struct {
	driverv1.MachineSpec `json:",inline"`

	// account is the account of the example cloud that the machine is in.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
	Account string `json:"account,omitempty"`

	// zones are those that the machine may be in. They are the failure domains; the Machine's, when it has one, leaves only that. Among
	// what is left, machines are spread, and a zone without capacity is passed over for a while.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=40
	// +kubebuilder:validation:items:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
	Zones []string `json:"zones,omitempty"`

	// machineType is the type of the machine, for example small.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	MachineType string `json:"machineType,omitempty"`

	// fallbackMachineTypes are used in this order while no zone has capacity for those before.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=40
	FallbackMachineTypes []string `json:"fallbackMachineTypes,omitempty"`

	// image is the name of the machine image.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Image string `json:"image,omitempty"`

	// spot asks for capacity that the cloud may take back at any time. It stops the machine then. Default: false.
	// +optional
	// +kubebuilder:default=false
	Spot bool `json:"spot,omitempty"`

	// labels are put on the machine, its disk, its interface and its address. Those that begin with millwright- are set by the provider.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-z0-9_-]{1,64}$') && self[k].matches('^[a-z0-9_-]*$'))",message="keys and values have lower-case letters, digits, _ and -, at most 64 characters, and a key has one at least"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('millwright-'))",message="labels that begin with millwright- are set by the provider: remove them from labels"
	Labels map[string]LabelValue `json:"labels,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=64
type LabelValue string

// ExampleMachineStatus is the observed state of one machine.
type ExampleMachineStatus struct {
	driverv1.MachineStatus `json:",inline"`
}

// ExampleMachine is one machine of the example cloud, owned by a Machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec.providerID) || has(self.spec.providerID) || has(self.status) && !self.status.ready && has(self.status.instanceState) && self.status.instanceState in ['Terminated', 'Failed']",message="spec.providerID cannot be removed, unless the instance has ended before it ran"
// +kubebuilder:resource:path=examplemachines,scope=Namespaced,categories={cluster-api},shortName=exm
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`,description="Cluster of the machine"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.machineType`,description="Machine type that is asked for first"
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.failureDomain`,description="Zone of the machine"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.instanceState`,description="State of the machine"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the machine runs"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is or is not ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type ExampleMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the desired state of the machine.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.account == oldSelf.account",message="account is immutable"
	// +kubebuilder:validation:XValidation:rule="self.zones == oldSelf.zones",message="zones is immutable"
	// +kubebuilder:validation:XValidation:rule="self.machineType == oldSelf.machineType",message="machineType is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.fallbackMachineTypes) == has(oldSelf.fallbackMachineTypes) && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes == oldSelf.fallbackMachineTypes)",message="fallbackMachineTypes is immutable"
	// +kubebuilder:validation:XValidation:rule="self.image == oldSelf.image",message="image is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.spot) == has(oldSelf.spot) && (!has(self.spot) || self.spot == oldSelf.spot)",message="spot is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.labels) == has(oldSelf.labels) && (!has(self.labels) || self.labels == oldSelf.labels)",message="labels is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.userDataCompression) == has(oldSelf.userDataCompression) && (!has(self.userDataCompression) || self.userDataCompression == oldSelf.userDataCompression)",message="userDataCompression is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.launchTimeoutSeconds) == has(oldSelf.launchTimeoutSeconds) && (!has(self.launchTimeoutSeconds) || self.launchTimeoutSeconds == oldSelf.launchTimeoutSeconds)",message="launchTimeoutSeconds is immutable"
	Spec ExampleMachineSpec `json:"spec,omitempty,omitzero"`
	// status is the observed state of the machine.
	// +optional
	Status ExampleMachineStatus `json:"status,omitempty,omitzero"`
}

// ExampleMachineList is a list of ExampleMachines.
//
// +kubebuilder:object:root=true
type ExampleMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ExampleMachine `json:"items"`
}

// CommonSpec returns the part of the spec that every provider's kind shares.
func (m *ExampleMachine) CommonSpec() *driverv1.MachineSpec { return &m.Spec.MachineSpec }

// CommonStatus returns the part of the status that every provider's kind shares.
func (m *ExampleMachine) CommonStatus() *driverv1.MachineStatus { return &m.Status.MachineStatus }

// ExampleMachineTemplateSpec holds the template of an ExampleMachine.
type ExampleMachineTemplateSpec struct {
	// template of the ExampleMachines to be created.
	// +required
	Template ExampleMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// ExampleMachineTemplateResource is what an ExampleMachine is created from.
type ExampleMachineTemplateResource struct {
	// metadata is put on the ExampleMachines created from the template.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec of the ExampleMachines created from the template.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.providerID)",message="providerID belongs to one instance and cannot be set in a template"
	Spec ExampleMachineSpec `json:"spec,omitempty,omitzero"`
}

// ExampleMachineTemplate is what a MachineSet creates ExampleMachines from. It is immutable: to change the machines of a
// MachineDeployment, create another one and refer to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=examplemachinetemplates,scope=Namespaced,categories={cluster-api},shortName=exmt
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.template.spec.machineType`,description="Machine type that is asked for first"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type ExampleMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec of the template.
	// +required
	Spec ExampleMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// ExampleMachineTemplateList is a list of ExampleMachineTemplates.
//
// +kubebuilder:object:root=true
type ExampleMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ExampleMachineTemplate `json:"items"`
}
