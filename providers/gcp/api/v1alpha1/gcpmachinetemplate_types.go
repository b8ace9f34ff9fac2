package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// GCPMachineTemplateSpec holds the template of a GCPMachine.
type GCPMachineTemplateSpec struct {
	// template of the GCPMachines to be made.
	// +required
	Template GCPMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// GCPMachineTemplateResource is what a GCPMachine is created from.
type GCPMachineTemplateResource struct {
	// metadata is put on the GCPMachines made from the template.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the GCPMachines made from the template.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.providerID)",message="providerID belongs to one instance and cannot be set in a template"
	Spec GCPMachineSpec `json:"spec,omitempty,omitzero"`
}

// GCPMachineTemplate is what a MachineSet makes GCPMachines from. It is immutable: to change the
// machines of a MachineDeployment, make a new template and refer to it. The ValidatingAdmissionPolicy
// millwright-gcp-templates, which is installed with the definition, refuses changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gcpmachinetemplates,scope=Namespaced,categories={cluster-api,millwright},shortName=gcpmt
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.template.spec.machineType`,description="Machine type"
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.template.spec.project`,description="Google Cloud project"
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.capacity.cpu`,description="CPUs of a Node"
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.capacity.memory`,description="Memory of a Node"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type GCPMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the template.
	// +required
	Spec GCPMachineTemplateSpec `json:"spec,omitempty,omitzero"`

	// status reports how large the Nodes of its machines are.
	// +optional
	Status GCPMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// GCPMachineTemplateStatus reports how large the Nodes of a template's machines are.
type GCPMachineTemplateStatus struct {
	driverv1.MachineTemplateStatus `json:",inline"`
}

// CommonStatus returns what all providers have in common.
func (t *GCPMachineTemplate) CommonStatus() *driverv1.MachineTemplateStatus {
	return &t.Status.MachineTemplateStatus
}

// GCPMachineTemplateList is a list of GCPMachineTemplates.
//
// +kubebuilder:object:root=true
type GCPMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GCPMachineTemplate `json:"items"`
}
