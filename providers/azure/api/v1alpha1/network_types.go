package v1alpha1

// NetworkInterface is a network interface beside the primary one.
type NetworkInterface struct {
	// subnetID is the resource ID of the subnet, of the same virtual network as that of the primary interface.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Network/virtualNetworks/[A-Za-z0-9._-]{1,80}/subnets/[A-Za-z0-9._-]{1,80}/?$`
	SubnetID string `json:"subnetID,omitempty"`

	// networkSecurityGroupID is the resource ID of the network security group of the interface. Unset means that of the subnet alone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Network/networkSecurityGroups/[A-Za-z0-9._-]{1,80}/?$`
	NetworkSecurityGroupID string `json:"networkSecurityGroupID,omitempty"`

	// acceleratedNetworking asks for single root I/O virtualization of the interface. Default: false.
	// +optional
	AcceleratedNetworking *bool `json:"acceleratedNetworking,omitempty"`

	// ipForwarding lets the interface send and receive what is not from or for its own address. Default: false.
	// +optional
	IPForwarding *bool `json:"ipForwarding,omitempty"`
}
