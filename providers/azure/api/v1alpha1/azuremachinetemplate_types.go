package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// AzureMachineTemplateSpec holds the template of an AzureMachine.
type AzureMachineTemplateSpec struct {
	// template of the AzureMachines to be made.
	// +required
	Template AzureMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// AzureMachineTemplateResource is what an AzureMachine is created from.
type AzureMachineTemplateResource struct {
	// metadata is put on the AzureMachines made from the template.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the AzureMachines made from the template.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.providerID)",message="providerID belongs to one instance and cannot be set in a template"
	// +kubebuilder:validation:XValidation:rule="!has(self.privateIPAddress)",message="privateIPAddress belongs to one machine and cannot be set in a template"
	Spec AzureMachineSpec `json:"spec,omitempty,omitzero"`
}

// AzureMachineTemplate is what a MachineSet makes AzureMachines from. It is immutable: to change the
// machines of a MachineDeployment, make a new template and refer to it. The ValidatingAdmissionPolicy
// millwright-azure-templates, which is installed with the definition, refuses changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=azuremachinetemplates,scope=Namespaced,categories={cluster-api,millwright},shortName=azmt
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.spec.template.spec.vmSize`,description="Size of the virtual machines"
// +kubebuilder:printcolumn:name="Location",type=string,JSONPath=`.spec.template.spec.location`,description="Azure region"
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.capacity.cpu`,description="CPUs of a Node"
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.capacity.memory`,description="Memory of a Node"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type AzureMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the template.
	// +required
	Spec AzureMachineTemplateSpec `json:"spec,omitempty,omitzero"`

	// status reports how large the Nodes of its machines are.
	// +optional
	Status AzureMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// AzureMachineTemplateStatus reports how large the Nodes of a template's machines are.
type AzureMachineTemplateStatus struct {
	driverv1.MachineTemplateStatus `json:",inline"`
}

// CommonStatus returns what all providers have in common.
func (t *AzureMachineTemplate) CommonStatus() *driverv1.MachineTemplateStatus {
	return &t.Status.MachineTemplateStatus
}

// AzureMachineTemplateList is a list of AzureMachineTemplates.
//
// +kubebuilder:object:root=true
type AzureMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AzureMachineTemplate `json:"items"`
}
