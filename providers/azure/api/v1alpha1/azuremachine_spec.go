package v1alpha1

import (
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Rules write ' '.trim() for an empty text: gofmt turns two single quotes in a doc comment into another character.

// AzureMachineSpec is the desired state of one virtual machine. All of it but providerID is fixed when the object is created: a machine is
// replaced, never changed.
// +kubebuilder:validation:XValidation:rule="!has(self.fallbackVMSizes) || !self.fallbackVMSizes.exists(size, size.lowerAscii() == self.vmSize.lowerAscii())",message="vmSize is tried first anyway: remove it from fallbackVMSizes",fieldPath=".fallbackVMSizes"
// +kubebuilder:validation:XValidation:rule="!has(self.spot) || !has(self.capacityReservationGroupID)",message="Spot Virtual Machines run in no capacity reservation: remove spot or capacityReservationGroupID",fieldPath=".capacityReservationGroupID"
// +kubebuilder:validation:XValidation:rule="!has(self.spot) || !has(self.osDisk) || !has(self.osDisk.ephemeral) || has(self.spot.evictionPolicy) && self.spot.evictionPolicy == 'Delete'",message="a Spot Virtual Machine with an ephemeral OS disk cannot be deallocated: set spot.evictionPolicy to Delete",fieldPath=".spot"
// +kubebuilder:validation:XValidation:rule="!has(self.privateIPAddress) || !has(self.publicIP) || !self.publicIP",message="a machine with an address of its own choice gets no public one: remove privateIPAddress or publicIP",fieldPath=".publicIP"
// +kubebuilder:validation:XValidation:rule="!has(self.placement) || !has(self.placement.availabilitySetID) || !has(self.zones)",message="a machine is in an availability set or in a zone: remove zones or placement.availabilitySetID",fieldPath=".placement"
// +kubebuilder:validation:XValidation:rule="!has(self.placement) || !has(self.placement.availabilitySetID) || !has(self.spot)",message="Spot Virtual Machines are in no availability set: remove spot or placement.availabilitySetID",fieldPath=".placement"
// +kubebuilder:validation:XValidation:rule="!has(self.dataDisks) || has(self.ultraSSD) && self.ultraSSD || !self.dataDisks.exists(d, has(d.storageAccountType) && d.storageAccountType == 'UltraSSD_LRS')",message="disks of type UltraSSD_LRS need a machine that may have them: set ultraSSD to true",fieldPath=".ultraSSD"
// +kubebuilder:validation:XValidation:rule="!has(self.placement) || !has(self.placement.availabilitySetID) || !has(self.dataDisks) || !self.dataDisks.exists(d, has(d.storageAccountType) && d.storageAccountType in ['UltraSSD_LRS', 'PremiumV2_LRS'])",message="machines of an availability set have no disks of type UltraSSD_LRS or PremiumV2_LRS: remove placement.availabilitySetID, or choose another storageAccountType",fieldPath=".dataDisks"
// +kubebuilder:validation:XValidation:rule="!has(self.capacityReservationGroupID) || !has(self.placement) || !has(self.placement.hostGroupID) && !has(self.placement.availabilitySetID)",message="a capacity reservation is for machines without dedicated host and availability set: remove capacityReservationGroupID, or placement.hostGroupID and placement.availabilitySetID",fieldPath=".capacityReservationGroupID"
// +kubebuilder:validation:XValidation:rule="!has(self.spot) || !has(self.placement) || !has(self.placement.hostGroupID)",message="Spot Virtual Machines run on no dedicated host: remove spot or placement.hostGroupID",fieldPath=".placement"
// +kubebuilder:validation:XValidation:rule="!has(self.zones) || self.zones.all(z, size(z) == 1 || (')' + self.location.replace(' ', ' '.trim()).lowerAscii()).endsWith(')' + z.substring(0, size(z) - 2).lowerAscii()))",message="a zone that begins with another region than location: write the number alone, or change location",fieldPath=".zones"
// +kubebuilder:validation:XValidation:rule="!self.resourceGroup.startsWith('/') || self.resourceGroup.lowerAscii().split('/')[2] in self.subscriptionID.lowerAscii().split('/')",message="the resource group is in another subscription than subscriptionID: give the name or the ID of a resource group of that subscription",fieldPath=".resourceGroup"
// +kubebuilder:validation:XValidation:rule="has(self.securityProfile) && has(self.securityProfile.type) && self.securityProfile.type == 'ConfidentialVM' || ![[self.vmSize], has(self.fallbackVMSizes) ? self.fallbackVMSizes : []].exists(l, l.exists(s, s.matches('(?i)^(standard[_ ])?([de]c[0-9]+(-[0-9]+)?i?[ae]d?s|ncc[0-9]+[a-z]+[_ ][a-z0-9]+)[_ ]v[0-9]+( [(].*)?$')))",message="Azure runs sizes such as DC2as_v5, EC2as_v5 and DC2es_v5 as confidential machines alone: set securityProfile.type to ConfidentialVM and securityProfile.vTPM to true and choose an image for them, or choose another size",fieldPath=".securityProfile"
// +kubebuilder:validation:XValidation:rule="!has(self.securityProfile) || !has(self.securityProfile.type) || self.securityProfile.type != 'ConfidentialVM' || [[self.vmSize], has(self.fallbackVMSizes) ? self.fallbackVMSizes : []].all(l, l.all(s, s.matches('(?i)^(standard[_ ])?([de]c[0-9]+(-[0-9]+)?i?[ae]d?s|ncc[0-9]+[a-z]+[_ ][a-z0-9]+)[_ ]v[0-9]+( [(].*)?$')))",message="Azure runs confidential machines on sizes such as DC2as_v5, EC2as_v5 and DC2es_v5 alone: choose such sizes, or another securityProfile.type",fieldPath=".securityProfile"
// +kubebuilder:validation:XValidation:rule="!has(self.providerID) || self.providerID.matches('^azure:///subscriptions/[0-9a-z-]+/resourceGroups/[^/A-Z]+/providers/Microsoft.Compute/virtualMachines/[^/]+$')",message="providerID has the form that Nodes get from the Azure cloud-controller-manager: azure:///subscriptions/<ID>/resourceGroups/<group in lower case>/providers/Microsoft.Compute/virtualMachines/<name>",fieldPath=".providerID"
type AzureMachineSpec struct {
	driverv1.MachineSpec `json:",inline"`

	// identityRef names the AzureIdentity with whose credentials Azure is called for this machine. That has to allow the namespace of this
	// object. Unset means the credentials of the provider's process, unless that runs with --require-identity.
	// +optional
	IdentityRef *driverv1.IdentityReference `json:"identityRef,omitempty"`

	// subscriptionID is the ID of the subscription that the machine is in.
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=52
	// +kubebuilder:validation:Pattern=`(?i)^(/subscriptions/)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/?$`
	SubscriptionID string `json:"subscriptionID,omitempty"`

	// resourceGroup is the resource group that the machine, its network interface, its disks and its public IP address are in. It has to
	// exist. Also by its resource ID, /subscriptions/<ID>/resourceGroups/<name>, of the subscription of subscriptionID.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=160
	// +kubebuilder:validation:Pattern=`(?i)^(/subscriptions/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/resourceGroups/)?[A-Z0-9_()]([A-Z0-9_().-]{0,88}[A-Z0-9_()-])?/?$`
	ResourceGroup string `json:"resourceGroup,omitempty"`

	// location is the Azure region by its name, for example westeurope, or its display name, West Europe.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:Pattern=`^(\([A-Za-z ]+\) ?)?[A-Za-z0-9]+( [A-Za-z0-9]+)*$`
	Location string `json:"location,omitempty"`

	// zones are the availability zones that the machine may be in, for example ["1", "2"], or as Nodes have them, westeurope-1. They are
	// the failure domains; the Machine's, when it has one, leaves only that. Among what is left, machines are spread, and a zone without
	// capacity is passed over for a while. Unset means a machine that is in no zone.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=42
	// +kubebuilder:validation:items:Pattern=`^([A-Za-z0-9]+-)?[1-9]$`
	Zones []string `json:"zones,omitempty"`

	// vmSize is the size of the machine, for example Standard_D4s_v5.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+( [A-Za-z0-9_-]+)*( \([^()]*\))?$`
	VMSize string `json:"vmSize,omitempty"`

	// fallbackVMSizes are sizes that do as well, in the order in which they are tried while Azure has no capacity for those before in any of
	// the zones: at most 15, each once, and not vmSize itself. They must be able to boot the same image.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=96
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_-]+( [A-Za-z0-9_-]+)*( \([^()]*\))?$`
	FallbackVMSizes []string `json:"fallbackVMSizes,omitempty"`

	// image is what the OS disk is made from.
	// +required
	Image Image `json:"image,omitempty,omitzero"`

	// subnetID is the resource ID of the subnet of the machine's network interface. It may be in another resource group.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Network/virtualNetworks/[A-Za-z0-9._-]{1,80}/subnets/[A-Za-z0-9._-]{1,80}/?$`
	SubnetID string `json:"subnetID,omitempty"`

	// networkSecurityGroupID is the resource ID of the network security group of the network interface. Unset means that of the subnet alone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Network/networkSecurityGroups/[A-Za-z0-9._-]{1,80}/?$`
	NetworkSecurityGroupID string `json:"networkSecurityGroupID,omitempty"`

	// acceleratedNetworking asks for single root I/O virtualization of the network interface. Azure refuses it for sizes that do not have it,
	// and so it must suit all sizes of the spec. Default: false.
	// +optional
	AcceleratedNetworking *bool `json:"acceleratedNetworking,omitempty"`

	// ipForwarding lets the network interface send and receive what is not from or for its own address. Default: false.
	// +optional
	IPForwarding *bool `json:"ipForwarding,omitempty"`

	// publicIP gives the machine a public IPv4 address of its own, which is deleted with it. Default: false.
	// +optional
	PublicIP *bool `json:"publicIP,omitempty"`

	// privateIPAddress is the private IPv4 address of the machine, a free one of the subnet. It belongs to one machine, so templates cannot
	// have it. The network interfaces are then created before the machine, with calls of their own. Default: Azure chooses one.
	// +optional
	// +kubebuilder:validation:MinLength=7
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$`
	PrivateIPAddress string `json:"privateIPAddress,omitempty"`

	// ipv6 gives the machine a private IPv6 address of the subnet beside that of IPv4; the subnet has to have an IPv6 prefix. Default: false.
	// +optional
	IPv6 *bool `json:"ipv6,omitempty"`

	// extraInterfaces are network interfaces beside the primary one, at most 7; the size decides how many there may be. They are created and
	// deleted with the machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	ExtraInterfaces []NetworkInterface `json:"extraInterfaces,omitempty"`

	// osDisk is the disk of the operating system. It is deleted with the machine.
	// +optional
	OSDisk *OSDisk `json:"osDisk,omitempty"`

	// dataDisks are empty disks that are created and deleted with the machine.
	// +optional
	// +listType=map
	// +listMapKey=lun
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	DataDisks []DataDisk `json:"dataDisks,omitempty"`

	// tags are put on the machine, its disks, its network interface and its public IP address: at most 40. Keys that begin with
	// infrastructure.millwright.dev_ or kubernetes.io_cluster_, in whatever case, are set by the provider.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=40
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 256 && k.matches('^[A-Za-z0-9_.:@+=-]([A-Za-z0-9 _.:@+=-]*[A-Za-z0-9_.:@+=-])?$'))",message="the key of a tag has 1 to 256 letters, digits, spaces and _ . : @ + = -, and no space at its ends"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.lowerAscii().startsWith('infrastructure.millwright.dev_') && !k.lowerAscii().startsWith('kubernetes.io_cluster_'))",message="tags that begin with infrastructure.millwright.dev_ or kubernetes.io_cluster_ are set by the provider: remove them from tags"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self.exists_one(other, other.lowerAscii() == k.lowerAscii()))",message="keys of tags are not case-sensitive in Azure: remove one of those that differ in case only"
	Tags map[string]TagValue `json:"tags,omitempty"`

	// spot asks for a Spot Virtual Machine, which Azure may take back at any time.
	// +optional
	Spot *Spot `json:"spot,omitempty"`

	// userAssignedIdentities are resource IDs of the managed identities that the machine has.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=400
	// +kubebuilder:validation:items:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/[A-Za-z0-9._-]{1,128}/?$`
	UserAssignedIdentities []string `json:"userAssignedIdentities,omitempty"`

	// securityProfile has the settings of trusted launch, confidential machines and encryption at the host.
	// +optional
	SecurityProfile *SecurityProfile `json:"securityProfile,omitempty"`

	// capacityReservationGroupID is the resource ID of the capacity reservation group whose reservations the machine uses.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Compute/capacityReservationGroups/[A-Za-z0-9._-]{1,80}/?$`
	CapacityReservationGroupID string `json:"capacityReservationGroupID,omitempty"`

	// placement is where the machine goes, beside its zone.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// sshPublicKey is a key that may log in as the user azureuser, as a line of authorized_keys of type ssh-rsa or ssh-ed25519, or that
	// line in base64. Unset means that no user can: Azure requires a key, so the machine gets one whose private key is discarded.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^\s*(ssh-(rsa|ed25519)[ \t]+[A-Za-z0-9+/=]+([ \t][^\n\r]*)?|c3NoL[A-Za-z0-9+/=]+)\s*$`
	SSHPublicKey string `json:"sshPublicKey,omitempty"`

	// bootDiagnostics keeps the console of the machine in a storage account that Azure manages. Default: false.
	// +optional
	BootDiagnostics *bool `json:"bootDiagnostics,omitempty"`

	// ultraSSD lets disks of type UltraSSD_LRS be attached, also later; PremiumV2_LRS does not need it. Sizes and zones have to support it.
	// Default: false.
	// +optional
	UltraSSD *bool `json:"ultraSSD,omitempty"`

	// diskControllerType is how disks are attached: SCSI or NVMe. All sizes of the spec and the image have to support it. Unset means that
	// Azure chooses what both support.
	// +optional
	// +kubebuilder:validation:Enum=SCSI;NVMe
	DiskControllerType string `json:"diskControllerType,omitempty"`
}

// TagValue is the value of a tag.
// +kubebuilder:validation:MaxLength=256
type TagValue string
