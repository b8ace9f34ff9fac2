package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// GCPMachineStatus is the observed state of one Compute Engine instance.
type GCPMachineStatus struct {
	driverv1.MachineStatus `json:",inline"`
}

// GCPMachine is one Compute Engine instance, owned by a Machine.
//
// The instance has the Machine's name, which only one instance of a zone can have. The launch is recorded in the annotation
// infrastructure.millwright.dev/launch before Compute Engine is called.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec.providerID) || has(self.spec.providerID) || has(self.status) && !self.status.ready && has(self.status.instanceState) && self.status.instanceState in ['Terminated', 'Failed']",message="spec.providerID cannot be removed, unless the instance has ended before it ran"
// +kubebuilder:resource:path=gcpmachines,scope=Namespaced,categories={cluster-api,millwright},shortName=gcpm
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`,description="Cluster of the machine"
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.status.instanceID`,description="Name of the instance"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.instanceType`,description="Machine type"
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.failureDomain`,description="Zone"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.instanceState`,description="State of the instance"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the instance runs"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is or is not ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type GCPMachine struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the instance.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.identityRef) == has(oldSelf.identityRef) && (!has(self.identityRef) || self.identityRef == oldSelf.identityRef)",message="identityRef is immutable"
	// +kubebuilder:validation:XValidation:rule="self.project == oldSelf.project",message="project is immutable"
	// +kubebuilder:validation:XValidation:rule="self.zones == oldSelf.zones",message="zones is immutable"
	// +kubebuilder:validation:XValidation:rule="self.machineType == oldSelf.machineType",message="machineType is immutable"
	// +kubebuilder:validation:XValidation:rule="self.image == oldSelf.image",message="image is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.fallbackMachineTypes) == has(oldSelf.fallbackMachineTypes) && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes == oldSelf.fallbackMachineTypes)",message="fallbackMachineTypes is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.bootDisk) == has(oldSelf.bootDisk) && (!has(self.bootDisk) || self.bootDisk == oldSelf.bootDisk)",message="bootDisk is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.disks) == has(oldSelf.disks) && (!has(self.disks) || self.disks == oldSelf.disks)",message="disks is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.subnetwork) == has(oldSelf.subnetwork) && (!has(self.subnetwork) || self.subnetwork == oldSelf.subnetwork)",message="subnetwork is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.publicIP) == has(oldSelf.publicIP) && (!has(self.publicIP) || self.publicIP == oldSelf.publicIP)",message="publicIP is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.stackType) == has(oldSelf.stackType) && (!has(self.stackType) || self.stackType == oldSelf.stackType)",message="stackType is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.aliasIPRanges) == has(oldSelf.aliasIPRanges) && (!has(self.aliasIPRanges) || self.aliasIPRanges == oldSelf.aliasIPRanges)",message="aliasIPRanges is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.canIPForward) == has(oldSelf.canIPForward) && (!has(self.canIPForward) || self.canIPForward == oldSelf.canIPForward)",message="canIPForward is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.networkTags) == has(oldSelf.networkTags) && (!has(self.networkTags) || self.networkTags == oldSelf.networkTags)",message="networkTags is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.serviceAccount) == has(oldSelf.serviceAccount) && (!has(self.serviceAccount) || self.serviceAccount == oldSelf.serviceAccount)",message="serviceAccount is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.labels) == has(oldSelf.labels) && (!has(self.labels) || self.labels == oldSelf.labels)",message="labels is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.metadata) == has(oldSelf.metadata) && (!has(self.metadata) || self.metadata == oldSelf.metadata)",message="metadata is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.accelerators) == has(oldSelf.accelerators) && (!has(self.accelerators) || self.accelerators == oldSelf.accelerators)",message="accelerators is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.provisioningModel) == has(oldSelf.provisioningModel) && (!has(self.provisioningModel) || self.provisioningModel == oldSelf.provisioningModel)",message="provisioningModel is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.instanceTerminationAction) == has(oldSelf.instanceTerminationAction) && (!has(self.instanceTerminationAction) || self.instanceTerminationAction == oldSelf.instanceTerminationAction)",message="instanceTerminationAction is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.onHostMaintenance) == has(oldSelf.onHostMaintenance) && (!has(self.onHostMaintenance) || self.onHostMaintenance == oldSelf.onHostMaintenance)",message="onHostMaintenance is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.reservation) == has(oldSelf.reservation) && (!has(self.reservation) || self.reservation == oldSelf.reservation)",message="reservation is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.shielded) == has(oldSelf.shielded) && (!has(self.shielded) || self.shielded == oldSelf.shielded)",message="shielded is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.confidentialType) == has(oldSelf.confidentialType) && (!has(self.confidentialType) || self.confidentialType == oldSelf.confidentialType)",message="confidentialType is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.deletionProtection) == has(oldSelf.deletionProtection) && (!has(self.deletionProtection) || self.deletionProtection == oldSelf.deletionProtection)",message="deletionProtection is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.userDataCompression) == has(oldSelf.userDataCompression) && (!has(self.userDataCompression) || self.userDataCompression == oldSelf.userDataCompression)",message="userDataCompression is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.launchTimeoutSeconds) == has(oldSelf.launchTimeoutSeconds) && (!has(self.launchTimeoutSeconds) || self.launchTimeoutSeconds == oldSelf.launchTimeoutSeconds)",message="launchTimeoutSeconds is immutable"
	Spec GCPMachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state of the instance.
	// +optional
	Status GCPMachineStatus `json:"status,omitempty,omitzero"`
}

// GCPMachineList is a list of GCPMachines.
//
// +kubebuilder:object:root=true
type GCPMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GCPMachine `json:"items"`
}

// CommonSpec returns the part of the spec that every provider's kind shares.
func (m *GCPMachine) CommonSpec() *driverv1.MachineSpec { return &m.Spec.MachineSpec }

// CommonStatus returns the part of the status that every provider's kind shares.
func (m *GCPMachine) CommonStatus() *driverv1.MachineStatus { return &m.Status.MachineStatus }
