package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// AzureMachineStatus is the observed state of one virtual machine.
type AzureMachineStatus struct {
	driverv1.MachineStatus `json:",inline"`
}

// AzureMachine is one Azure virtual machine, owned by a Machine.
//
// The launch is made once by its name, which is the Machine's: it is written to the annotation infrastructure.millwright.dev/launch before
// Azure is called (an annotation, because clusterctl move carries annotations and drops status), and Azure is asked to create the machine
// only if there is none of that name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec.providerID) || has(self.spec.providerID) || has(self.status) && !self.status.ready && has(self.status.instanceState) && self.status.instanceState in ['Terminated', 'Failed']",message="spec.providerID cannot be removed, unless the instance has ended before it ran"
// +kubebuilder:resource:path=azuremachines,scope=Namespaced,categories={cluster-api,millwright},shortName=azm
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`,description="Cluster of the machine"
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.status.instanceID`,description="Name of the virtual machine"
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.instanceType`,description="Size of the virtual machine"
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.failureDomain`,description="Availability zone"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.instanceState`,description="State of the virtual machine"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the virtual machine runs"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is or is not ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type AzureMachine struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the virtual machine.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.identityRef) == has(oldSelf.identityRef) && (!has(self.identityRef) || self.identityRef == oldSelf.identityRef)",message="identityRef is immutable"
	// +kubebuilder:validation:XValidation:rule="self.subscriptionID == oldSelf.subscriptionID",message="subscriptionID is immutable"
	// +kubebuilder:validation:XValidation:rule="self.resourceGroup == oldSelf.resourceGroup",message="resourceGroup is immutable"
	// +kubebuilder:validation:XValidation:rule="self.location == oldSelf.location",message="location is immutable"
	// +kubebuilder:validation:XValidation:rule="self.vmSize == oldSelf.vmSize",message="vmSize is immutable"
	// +kubebuilder:validation:XValidation:rule="self.image == oldSelf.image",message="image is immutable"
	// +kubebuilder:validation:XValidation:rule="self.subnetID == oldSelf.subnetID",message="subnetID is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.zones) == has(oldSelf.zones) && (!has(self.zones) || self.zones == oldSelf.zones)",message="zones is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.fallbackVMSizes) == has(oldSelf.fallbackVMSizes) && (!has(self.fallbackVMSizes) || self.fallbackVMSizes == oldSelf.fallbackVMSizes)",message="fallbackVMSizes is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.networkSecurityGroupID) == has(oldSelf.networkSecurityGroupID) && (!has(self.networkSecurityGroupID) || self.networkSecurityGroupID == oldSelf.networkSecurityGroupID)",message="networkSecurityGroupID is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.acceleratedNetworking) == has(oldSelf.acceleratedNetworking) && (!has(self.acceleratedNetworking) || self.acceleratedNetworking == oldSelf.acceleratedNetworking)",message="acceleratedNetworking is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.ipForwarding) == has(oldSelf.ipForwarding) && (!has(self.ipForwarding) || self.ipForwarding == oldSelf.ipForwarding)",message="ipForwarding is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.publicIP) == has(oldSelf.publicIP) && (!has(self.publicIP) || self.publicIP == oldSelf.publicIP)",message="publicIP is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.privateIPAddress) == has(oldSelf.privateIPAddress) && (!has(self.privateIPAddress) || self.privateIPAddress == oldSelf.privateIPAddress)",message="privateIPAddress is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.ipv6) == has(oldSelf.ipv6) && (!has(self.ipv6) || self.ipv6 == oldSelf.ipv6)",message="ipv6 is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.extraInterfaces) == has(oldSelf.extraInterfaces) && (!has(self.extraInterfaces) || self.extraInterfaces == oldSelf.extraInterfaces)",message="extraInterfaces is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.osDisk) == has(oldSelf.osDisk) && (!has(self.osDisk) || self.osDisk == oldSelf.osDisk)",message="osDisk is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.dataDisks) == has(oldSelf.dataDisks) && (!has(self.dataDisks) || self.dataDisks == oldSelf.dataDisks)",message="dataDisks is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.tags) == has(oldSelf.tags) && (!has(self.tags) || self.tags == oldSelf.tags)",message="tags is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.spot) == has(oldSelf.spot) && (!has(self.spot) || self.spot == oldSelf.spot)",message="spot is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.userAssignedIdentities) == has(oldSelf.userAssignedIdentities) && (!has(self.userAssignedIdentities) || self.userAssignedIdentities == oldSelf.userAssignedIdentities)",message="userAssignedIdentities is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.securityProfile) == has(oldSelf.securityProfile) && (!has(self.securityProfile) || self.securityProfile == oldSelf.securityProfile)",message="securityProfile is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.capacityReservationGroupID) == has(oldSelf.capacityReservationGroupID) && (!has(self.capacityReservationGroupID) || self.capacityReservationGroupID == oldSelf.capacityReservationGroupID)",message="capacityReservationGroupID is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement)",message="placement is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.sshPublicKey) == has(oldSelf.sshPublicKey) && (!has(self.sshPublicKey) || self.sshPublicKey == oldSelf.sshPublicKey)",message="sshPublicKey is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.bootDiagnostics) == has(oldSelf.bootDiagnostics) && (!has(self.bootDiagnostics) || self.bootDiagnostics == oldSelf.bootDiagnostics)",message="bootDiagnostics is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.ultraSSD) == has(oldSelf.ultraSSD) && (!has(self.ultraSSD) || self.ultraSSD == oldSelf.ultraSSD)",message="ultraSSD is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.diskControllerType) == has(oldSelf.diskControllerType) && (!has(self.diskControllerType) || self.diskControllerType == oldSelf.diskControllerType)",message="diskControllerType is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.userDataCompression) == has(oldSelf.userDataCompression) && (!has(self.userDataCompression) || self.userDataCompression == oldSelf.userDataCompression)",message="userDataCompression is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.launchTimeoutSeconds) == has(oldSelf.launchTimeoutSeconds) && (!has(self.launchTimeoutSeconds) || self.launchTimeoutSeconds == oldSelf.launchTimeoutSeconds)",message="launchTimeoutSeconds is immutable"
	Spec AzureMachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state of the virtual machine.
	// +optional
	Status AzureMachineStatus `json:"status,omitempty,omitzero"`
}

// AzureMachineList is a list of AzureMachines.
//
// +kubebuilder:object:root=true
type AzureMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AzureMachine `json:"items"`
}

// CommonSpec returns the part of the spec that every provider's kind shares.
func (m *AzureMachine) CommonSpec() *driverv1.MachineSpec { return &m.Spec.MachineSpec }

// CommonStatus returns the part of the status that every provider's kind shares.
func (m *AzureMachine) CommonStatus() *driverv1.MachineStatus { return &m.Status.MachineStatus }
