package v1alpha1

// Spot has the settings of a Spot Virtual Machine.
type Spot struct {
	// maxPrice is what an hour may cost at most, in US dollars with up to five decimals, for example 0.01295. Unset or -1 means the price of a
	// machine that is not Spot: it is not taken back for its price.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:Pattern=`^(-1(\.0+)?|[0-9]{1,6}(\.[0-9]{1,5})?)$`
	// +kubebuilder:validation:XValidation:rule="self.startsWith('-1') || double(self) > 0.0",message="maxPrice must be more than 0: raise it, or set -1 for no limit"
	MaxPrice string `json:"maxPrice,omitempty"`

	// evictionPolicy is what becomes of the machine when Azure takes it back: Delete, or Deallocate, which keeps its disks, and their cost,
	// until the Machine is deleted. Either way the machine has failed and is not started again. Default: Delete.
	// +optional
	// +kubebuilder:default=Delete
	// +kubebuilder:validation:Enum=Delete;Deallocate
	EvictionPolicy string `json:"evictionPolicy,omitempty"`
}

// SecurityProfile has settings of the security of a machine.
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type != 'Standard' || !has(self.secureBoot) && !has(self.vTPM)",message="secureBoot and vTPM need a type: set it to TrustedLaunch or ConfidentialVM"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'ConfidentialVM' || has(self.vTPM) && self.vTPM",message="a confidential machine needs a virtual TPM: set vTPM to true",fieldPath=".vTPM"
type SecurityProfile struct {
	// type is Standard, TrustedLaunch or ConfidentialVM. Sizes and image have to support it. ConfidentialVM is required by the sizes for
	// confidential machines (DC and EC of the families as, ads, es and eds, and NCC), is refused with others, and needs an image whose
	// definition has it. Standard has to be registered in the subscription as the feature UseStandardSecurityType. Unset means Azure's
	// default.
	// +optional
	// +kubebuilder:validation:Enum=Standard;TrustedLaunch;ConfidentialVM
	Type string `json:"type,omitempty"`

	// secureBoot lets the machine boot only what is signed. Default: false.
	// +optional
	SecureBoot *bool `json:"secureBoot,omitempty"`

	// vTPM gives the machine a virtual trusted platform module. Default: false.
	// +optional
	VTPM *bool `json:"vTPM,omitempty"`

	// encryptionAtHost encrypts disks and caches where they are attached. The feature has to be registered in the subscription.
	// Default: false.
	// +optional
	EncryptionAtHost *bool `json:"encryptionAtHost,omitempty"`
}

// Placement is where a machine goes, beside its zone.
// +kubebuilder:validation:XValidation:rule="!has(self.availabilitySetID) || !has(self.scaleSetID)",message="a machine is in an availability set or in a scale set: remove one of them",fieldPath=".scaleSetID"
type Placement struct {
	// availabilitySetID is the resource ID of the availability set of the machine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Compute/availabilitySets/[A-Za-z0-9._-]{1,80}/?$`
	AvailabilitySetID string `json:"availabilitySetID,omitempty"`

	// scaleSetID is the resource ID of a virtual machine scale set with flexible orchestration that the machine joins, without its model.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Compute/virtualMachineScaleSets/[A-Za-z0-9._-]{1,80}/?$`
	ScaleSetID string `json:"scaleSetID,omitempty"`

	// proximityPlacementGroupID is the resource ID of the proximity placement group of the machine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Compute/proximityPlacementGroups/[A-Za-z0-9._-]{1,80}/?$`
	ProximityPlacementGroupID string `json:"proximityPlacementGroupID,omitempty"`

	// hostGroupID is the resource ID of the dedicated host group on whose hosts the machine runs.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Compute/hostGroups/[A-Za-z0-9._-]{1,80}/?$`
	HostGroupID string `json:"hostGroupID,omitempty"`
}
