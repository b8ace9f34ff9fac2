package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// AWSMachineStatus is the observed state of one EC2 instance.
type AWSMachineStatus struct {
	driverv1.MachineStatus `json:",inline"`
}

// AWSMachine is one EC2 instance, owned by a Machine.
//
// The launch is made idempotent by a client token, which is written to the annotation
// infrastructure.millwright.dev/launch before EC2 is called.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec.providerID) || has(self.spec.providerID) || has(self.status) && !self.status.ready && has(self.status.instanceState) && self.status.instanceState in ['Terminated', 'Failed']",message="spec.providerID cannot be removed, unless the instance has ended before it ran"
// +kubebuilder:resource:path=awsmachines,scope=Namespaced,categories={cluster-api,millwright},shortName=awsm
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`,description="Cluster of the machine"
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.status.instanceID`,description="EC2 instance ID"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.instanceType`,description="EC2 instance type"
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
	// +kubebuilder:validation:XValidation:rule="has(self.identityRef) == has(oldSelf.identityRef) && (!has(self.identityRef) || self.identityRef == oldSelf.identityRef)",message="identityRef is immutable"
	// +kubebuilder:validation:XValidation:rule="self.instanceType == oldSelf.instanceType",message="instanceType is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.fallbackInstanceTypes) == has(oldSelf.fallbackInstanceTypes) && (!has(self.fallbackInstanceTypes) || self.fallbackInstanceTypes == oldSelf.fallbackInstanceTypes)",message="fallbackInstanceTypes is immutable"
	// +kubebuilder:validation:XValidation:rule="self.ami == oldSelf.ami",message="ami is immutable"
	// +kubebuilder:validation:XValidation:rule="self.subnets == oldSelf.subnets",message="subnets is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.securityGroupIDs) == has(oldSelf.securityGroupIDs) && (!has(self.securityGroupIDs) || self.securityGroupIDs == oldSelf.securityGroupIDs)",message="securityGroupIDs is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.iamInstanceProfile) == has(oldSelf.iamInstanceProfile) && (!has(self.iamInstanceProfile) || self.iamInstanceProfile == oldSelf.iamInstanceProfile)",message="iamInstanceProfile is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.keyName) == has(oldSelf.keyName) && (!has(self.keyName) || self.keyName == oldSelf.keyName)",message="keyName is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.publicIP) == has(oldSelf.publicIP) && (!has(self.publicIP) || self.publicIP == oldSelf.publicIP)",message="publicIP is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.securityGroupSelectors) == has(oldSelf.securityGroupSelectors) && (!has(self.securityGroupSelectors) || self.securityGroupSelectors == oldSelf.securityGroupSelectors)",message="securityGroupSelectors is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.ipv6) == has(oldSelf.ipv6) && (!has(self.ipv6) || self.ipv6 == oldSelf.ipv6)",message="ipv6 is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.interfaceType) == has(oldSelf.interfaceType) && (!has(self.interfaceType) || self.interfaceType == oldSelf.interfaceType)",message="interfaceType is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.extraInterfaces) == has(oldSelf.extraInterfaces) && (!has(self.extraInterfaces) || self.extraInterfaces == oldSelf.extraInterfaces)",message="extraInterfaces is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.sourceDestCheck) == has(oldSelf.sourceDestCheck) && (!has(self.sourceDestCheck) || self.sourceDestCheck == oldSelf.sourceDestCheck)",message="sourceDestCheck is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.rootVolume) == has(oldSelf.rootVolume) && (!has(self.rootVolume) || self.rootVolume == oldSelf.rootVolume)",message="rootVolume is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.volumes) == has(oldSelf.volumes) && (!has(self.volumes) || self.volumes == oldSelf.volumes)",message="volumes is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.tags) == has(oldSelf.tags) && (!has(self.tags) || self.tags == oldSelf.tags)",message="tags is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.spot) == has(oldSelf.spot) && (!has(self.spot) || self.spot == oldSelf.spot)",message="spot is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.metadata) == has(oldSelf.metadata) && (!has(self.metadata) || self.metadata == oldSelf.metadata)",message="metadata is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.marketType) == has(oldSelf.marketType) && (!has(self.marketType) || self.marketType == oldSelf.marketType)",message="marketType is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.capacityReservation) == has(oldSelf.capacityReservation) && (!has(self.capacityReservation) || self.capacityReservation == oldSelf.capacityReservation)",message="capacityReservation is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement)",message="placement is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.cpuOptions) == has(oldSelf.cpuOptions) && (!has(self.cpuOptions) || self.cpuOptions == oldSelf.cpuOptions)",message="cpuOptions is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.terminationProtection) == has(oldSelf.terminationProtection) && (!has(self.terminationProtection) || self.terminationProtection == oldSelf.terminationProtection)",message="terminationProtection is immutable"
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
