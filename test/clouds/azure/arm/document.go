package arm

// vmDocument is the body of a PUT of a virtual machine, as far as it is simulated: what it does not have is refused. See
// https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update.
type vmDocument struct {
	Location   string            `json:"location"`
	Tags       map[string]string `json:"tags,omitempty"`
	Zones      []string          `json:"zones,omitempty"`
	Plan       *plan             `json:"plan,omitempty"`
	Identity   *vmIdentity       `json:"identity,omitempty"`
	Properties vmProperties      `json:"properties"`
}

type plan struct {
	Name      string `json:"name,omitempty"`
	Product   string `json:"product,omitempty"`
	Publisher string `json:"publisher,omitempty"`
}

type vmIdentity struct {
	Type                   string              `json:"type"`
	UserAssignedIdentities map[string]struct{} `json:"userAssignedIdentities,omitempty"`
}

type vmProperties struct {
	HardwareProfile         *hardwareProfile     `json:"hardwareProfile,omitempty"`
	StorageProfile          *storageProfile      `json:"storageProfile,omitempty"`
	OSProfile               *osProfile           `json:"osProfile,omitempty"`
	NetworkProfile          *networkProfile      `json:"networkProfile,omitempty"`
	SecurityProfile         *securityProfile     `json:"securityProfile,omitempty"`
	DiagnosticsProfile      *diagnosticsProfile  `json:"diagnosticsProfile,omitempty"`
	CapacityReservation     *capacityReservation `json:"capacityReservation,omitempty"`
	AdditionalCapabilities  *capabilities        `json:"additionalCapabilities,omitempty"`
	AvailabilitySet         *subResource         `json:"availabilitySet,omitempty"`
	ProximityPlacementGroup *subResource         `json:"proximityPlacementGroup,omitempty"`
	HostGroup               *subResource         `json:"hostGroup,omitempty"`
	VirtualMachineScaleSet  *subResource         `json:"virtualMachineScaleSet,omitempty"`
	Priority                string               `json:"priority,omitempty"`
	EvictionPolicy          string               `json:"evictionPolicy,omitempty"`
	BillingProfile          *billingProfile      `json:"billingProfile,omitempty"`
	UserData                string               `json:"userData,omitempty"`

	// Only in answers.
	VMID              string        `json:"vmId,omitempty"`
	ProvisioningState string        `json:"provisioningState,omitempty"`
	TimeCreated       string        `json:"timeCreated,omitempty"`
	InstanceView      *instanceView `json:"instanceView,omitempty"`
}

type hardwareProfile struct {
	VMSize string `json:"vmSize,omitempty"`
}

type subResource struct {
	ID string `json:"id,omitempty"`
}

type storageProfile struct {
	ImageReference     *imageReference `json:"imageReference,omitempty"`
	OSDisk             *osDisk         `json:"osDisk,omitempty"`
	DataDisks          []dataDisk      `json:"dataDisks,omitempty"`
	DiskControllerType string          `json:"diskControllerType,omitempty"`
}

type imageReference struct {
	ID                      string `json:"id,omitempty"`
	Publisher               string `json:"publisher,omitempty"`
	Offer                   string `json:"offer,omitempty"`
	SKU                     string `json:"sku,omitempty"`
	Version                 string `json:"version,omitempty"`
	CommunityGalleryImageID string `json:"communityGalleryImageId,omitempty"`
	SharedGalleryImageID    string `json:"sharedGalleryImageId,omitempty"`
	ExactVersion            string `json:"exactVersion,omitempty"`
}

type osDisk struct {
	CreateOption     string         `json:"createOption,omitempty"`
	Name             string         `json:"name,omitempty"`
	OSType           string         `json:"osType,omitempty"`
	Caching          string         `json:"caching,omitempty"`
	DeleteOption     string         `json:"deleteOption,omitempty"`
	DiskSizeGB       int32          `json:"diskSizeGB,omitempty"`
	ManagedDisk      *managedDisk   `json:"managedDisk,omitempty"`
	DiffDiskSettings *diffDiskState `json:"diffDiskSettings,omitempty"`
}

type diffDiskState struct {
	Option    string `json:"option,omitempty"`
	Placement string `json:"placement,omitempty"`
}

type managedDisk struct {
	ID                 string               `json:"id,omitempty"`
	StorageAccountType string               `json:"storageAccountType,omitempty"`
	DiskEncryptionSet  *subResource         `json:"diskEncryptionSet,omitempty"`
	SecurityProfile    *diskSecurityProfile `json:"securityProfile,omitempty"`
}

type diskSecurityProfile struct {
	SecurityEncryptionType string       `json:"securityEncryptionType,omitempty"`
	DiskEncryptionSet      *subResource `json:"diskEncryptionSet,omitempty"`
}

type dataDisk struct {
	Lun                     int32        `json:"lun"`
	Name                    string       `json:"name,omitempty"`
	CreateOption            string       `json:"createOption,omitempty"`
	Caching                 string       `json:"caching,omitempty"`
	DeleteOption            string       `json:"deleteOption,omitempty"`
	DiskSizeGB              int32        `json:"diskSizeGB,omitempty"`
	ManagedDisk             *managedDisk `json:"managedDisk,omitempty"`
	WriteAcceleratorEnabled bool         `json:"writeAcceleratorEnabled,omitempty"`
}

type osProfile struct {
	ComputerName             string              `json:"computerName,omitempty"`
	AdminUsername            string              `json:"adminUsername,omitempty"`
	AdminPassword            string              `json:"adminPassword,omitempty"`
	CustomData               string              `json:"customData,omitempty"`
	LinuxConfiguration       *linuxConfiguration `json:"linuxConfiguration,omitempty"`
	AllowExtensionOperations *bool               `json:"allowExtensionOperations,omitempty"`
}

type linuxConfiguration struct {
	DisablePasswordAuthentication bool              `json:"disablePasswordAuthentication,omitempty"`
	ProvisionVMAgent              *bool             `json:"provisionVMAgent,omitempty"`
	SSH                           *sshConfiguration `json:"ssh,omitempty"`
}

type sshConfiguration struct {
	PublicKeys []publicKey `json:"publicKeys,omitempty"`
}

type publicKey struct {
	Path    string `json:"path,omitempty"`
	KeyData string `json:"keyData,omitempty"`
}

type networkProfile struct {
	NetworkAPIVersion              string               `json:"networkApiVersion,omitempty"`
	NetworkInterfaces              []interfaceReference `json:"networkInterfaces,omitempty"`
	NetworkInterfaceConfigurations []interfaceConfig    `json:"networkInterfaceConfigurations,omitempty"`
}

type interfaceReference struct {
	ID         string                  `json:"id"`
	Properties interfaceReferenceState `json:"properties"`
}

type interfaceReferenceState struct {
	Primary      bool   `json:"primary,omitempty"`
	DeleteOption string `json:"deleteOption,omitempty"`
}

type interfaceConfig struct {
	Name       string               `json:"name"`
	Tags       map[string]string    `json:"tags,omitempty"`
	Properties interfaceConfigState `json:"properties"`
}

type interfaceConfigState struct {
	Primary                     bool         `json:"primary,omitempty"`
	DeleteOption                string       `json:"deleteOption,omitempty"`
	EnableAcceleratedNetworking bool         `json:"enableAcceleratedNetworking,omitempty"`
	EnableIPForwarding          bool         `json:"enableIPForwarding,omitempty"`
	NetworkSecurityGroup        *subResource `json:"networkSecurityGroup,omitempty"`
	IPConfigurations            []ipConfig   `json:"ipConfigurations"`
}

type ipConfig struct {
	Name       string        `json:"name"`
	Properties ipConfigState `json:"properties"`
}

type ipConfigState struct {
	Primary                 bool         `json:"primary,omitempty"`
	Subnet                  *subResource `json:"subnet,omitempty"`
	PrivateIPAddressVersion string       `json:"privateIPAddressVersion,omitempty"`

	// Only of interfaces that are created on their own.
	PrivateIPAllocationMethod string `json:"privateIPAllocationMethod,omitempty"`
	PrivateIPAddress          string `json:"privateIPAddress,omitempty"`

	// Only of interfaces that a launch describes.
	PublicIPAddressConfiguration *addressConfig `json:"publicIPAddressConfiguration,omitempty"`
}

// nicDocument is the body of a PUT of an interface, as far as it is simulated. See
// https://learn.microsoft.com/rest/api/virtualnetwork/network-interfaces/create-or-update.
type nicDocument struct {
	Location   string            `json:"location"`
	Tags       map[string]string `json:"tags,omitempty"`
	Properties struct {
		EnableAcceleratedNetworking bool         `json:"enableAcceleratedNetworking,omitempty"`
		EnableIPForwarding          bool         `json:"enableIPForwarding,omitempty"`
		NetworkSecurityGroup        *subResource `json:"networkSecurityGroup,omitempty"`
		IPConfigurations            []ipConfig   `json:"ipConfigurations"`
	} `json:"properties"`
}

type addressConfig struct {
	Name       string             `json:"name"`
	Tags       map[string]string  `json:"tags,omitempty"`
	SKU        *addressSKU        `json:"sku,omitempty"`
	Properties addressConfigState `json:"properties"`
}

type addressSKU struct {
	Name string `json:"name,omitempty"`
	Tier string `json:"tier,omitempty"`
}

type addressConfigState struct {
	DeleteOption             string `json:"deleteOption,omitempty"`
	PublicIPAllocationMethod string `json:"publicIPAllocationMethod,omitempty"`
	PublicIPAddressVersion   string `json:"publicIPAddressVersion,omitempty"`
}

type securityProfile struct {
	SecurityType     string `json:"securityType,omitempty"`
	EncryptionAtHost bool   `json:"encryptionAtHost,omitempty"`
	UefiSettings     *struct {
		SecureBootEnabled bool `json:"secureBootEnabled,omitempty"`
		VTpmEnabled       bool `json:"vTpmEnabled,omitempty"`
	} `json:"uefiSettings,omitempty"`
}

type diagnosticsProfile struct {
	BootDiagnostics *struct {
		Enabled    bool   `json:"enabled"`
		StorageURI string `json:"storageUri,omitempty"`
	} `json:"bootDiagnostics,omitempty"`
}

type capacityReservation struct {
	CapacityReservationGroup *subResource `json:"capacityReservationGroup,omitempty"`
}

type capabilities struct {
	UltraSSDEnabled bool `json:"ultraSSDEnabled,omitempty"`
}

type billingProfile struct {
	MaxPrice float64 `json:"maxPrice"`
}

type instanceView struct {
	ComputerName string           `json:"computerName,omitempty"`
	Statuses     []instanceStatus `json:"statuses"`
}

type instanceStatus struct {
	Code          string `json:"code"`
	Level         string `json:"level"`
	DisplayStatus string `json:"displayStatus"`
	Message       string `json:"message,omitempty"`
	Time          string `json:"time,omitempty"`
}
