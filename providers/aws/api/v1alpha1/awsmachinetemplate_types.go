package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// AWSMachineTemplateSpec holds the template of an AWSMachine.
type AWSMachineTemplateSpec struct {
	// template of the AWSMachines to be made.
	// +required
	Template AWSMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// AWSMachineTemplateResource is what an AWSMachine is created from.
type AWSMachineTemplateResource struct {
	// metadata is put on the AWSMachines made from the template.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the AWSMachines made from the template.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.providerID)",message="providerID belongs to one instance and cannot be set in a template"
	Spec AWSMachineSpec `json:"spec,omitempty,omitzero"`
}

// AWSMachineTemplate is what a MachineSet makes AWSMachines from. It is immutable: to change the
// machines of a MachineDeployment, make a new template and refer to it. The ValidatingAdmissionPolicy
// millwright-aws-templates, which is installed with the definition, refuses changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=awsmachinetemplates,scope=Namespaced,categories={cluster-api,millwright},shortName=awsmt
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.template.spec.instanceType`,description="EC2 instance type"
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.template.spec.region`,description="AWS region"
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.capacity.cpu`,description="CPUs of a Node"
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.capacity.memory`,description="Memory of a Node"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type AWSMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the template.
	// +required
	Spec AWSMachineTemplateSpec `json:"spec,omitempty,omitzero"`

	// status reports how large the Nodes of its machines are.
	// +optional
	Status AWSMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// AWSMachineTemplateStatus reports how large the Nodes of a template's machines are.
type AWSMachineTemplateStatus struct {
	driverv1.MachineTemplateStatus `json:",inline"`
}

// CommonStatus returns what all providers have in common.
func (t *AWSMachineTemplate) CommonStatus() *driverv1.MachineTemplateStatus {
	return &t.Status.MachineTemplateStatus
}

// AWSMachineTemplateList is a list of AWSMachineTemplates.
//
// +kubebuilder:object:root=true
type AWSMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AWSMachineTemplate `json:"items"`
}
