package v1alpha1

import (
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// GCPMachineSpec is the desired state of one Compute Engine instance. All of it but providerID is fixed when the object is created: an
// instance is replaced, never changed.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fallbackMachineTypes) || !(self.machineType in self.fallbackMachineTypes)",message="machineType is tried first anyway: remove it from fallbackMachineTypes",fieldPath=".fallbackMachineTypes"
// +kubebuilder:validation:XValidation:rule="!has(self.subnetwork) || self.zones[0].startsWith(self.subnetwork.split('/')[3] + '-')",message="the subnetwork is of another region than the zones: an instance needs one of its own region",fieldPath=".subnetwork"
// +kubebuilder:validation:XValidation:rule="!has(self.instanceTerminationAction) || has(self.provisioningModel) && self.provisioningModel == 'SPOT'",message="instanceTerminationAction says what happens to a spot instance: set provisioningModel to SPOT, or remove it",fieldPath=".instanceTerminationAction"
// +kubebuilder:validation:XValidation:rule="!has(self.onHostMaintenance) || self.onHostMaintenance != 'MIGRATE' || !has(self.accelerators) && (!has(self.provisioningModel) || self.provisioningModel != 'SPOT')",message="Compute Engine migrates neither spot instances nor those with accelerators: set onHostMaintenance to TERMINATE, or remove it",fieldPath=".onHostMaintenance"
// +kubebuilder:validation:XValidation:rule="!has(self.aliasIPRanges) || has(self.subnetwork)",message="alias IP ranges are of a subnetwork: set subnetwork",fieldPath=".aliasIPRanges"
type GCPMachineSpec struct {
	driverv1.MachineSpec `json:",inline"`

	// identityRef names the GCPIdentity with whose credentials Google Cloud is called for this instance. That has to allow the namespace of
	// this object. Unset means the credentials of the provider's process, unless that runs with --require-identity.
	// +optional
	IdentityRef *driverv1.IdentityReference `json:"identityRef,omitempty"`

	// project is the ID of the Google Cloud project that the instance is in, for example my-project.
	// +required
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9-]*[a-z0-9]$`
	Project string `json:"project,omitempty"`

	// zones are those that the instance may be in, all of one region, for example us-central1-a. They are the failure domains; the
	// Machine's, when it has one, leaves only that. Among what is left, instances are spread, and a zone without capacity is passed over
	// for a while.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=40
	// +kubebuilder:validation:items:Pattern=`^[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$`
	// +kubebuilder:validation:XValidation:rule="self.all(z, z.split('-')[0] == self[0].split('-')[0] && z.split('-')[1] == self[0].split('-')[1])",message="the zones are of different regions: give those of one"
	Zones []string `json:"zones,omitempty"`

	// machineType is the machine type, for example n2-standard-4. Custom types are allowed, for example n2-custom-4-8192.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9-]*[a-z0-9]$`
	MachineType string `json:"machineType,omitempty"`

	// fallbackMachineTypes are machine types that do as well, in the order in which they are tried while no zone has capacity for those
	// before: at most 15, each once, and not machineType itself. They must be able to boot the same image. Unset means that the launch
	// waits for capacity of machineType.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z][a-z0-9-]*[a-z0-9]$`
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x == y))",message="each fallback machine type is tried once: remove the repetition"
	FallbackMachineTypes []string `json:"fallbackMachineTypes,omitempty"`

	// image is the machine image of the boot disk.
	// +required
	Image ImageReference `json:"image,omitempty,omitzero"`

	// bootDisk is the disk that the instance boots from. Unset means one as large as the image, of the type that Compute Engine chooses.
	// +optional
	BootDisk *Disk `json:"bootDisk,omitempty"`

	// disks are disks beside the boot disk, created empty and deleted with the instance.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(d, has(d.type))",message="each disk needs a type, for example pd-balanced, or local-ssd"
	// +kubebuilder:validation:XValidation:rule="self.all(d, has(d.sizeGiB) || has(d.type) && d.type == 'local-ssd')",message="each disk needs a size: set sizeGiB; local SSDs have a size of their own"
	Disks []Disk `json:"disks,omitempty"`

	// subnetwork is the subnetwork of the network interface, in the region of the zones, with its project, which is the host project for
	// a shared VPC: for example projects/my-host/regions/us-central1/subnetworks/nodes. Unset means that of the network named default.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^projects/[a-z][a-z0-9.:-]*[a-z0-9]/regions/[a-z]+-[a-z]+[0-9]+/subnetworks/[a-z]([-a-z0-9]*[a-z0-9])?$`
	Subnetwork string `json:"subnetwork,omitempty"`

	// publicIP returns whether the instance gets an ephemeral external IPv4 address. Default: false.
	// +optional
	PublicIP *bool `json:"publicIP,omitempty"`

	// stackType is which addresses the network interface has: IPV4_ONLY, or IPV4_IPV6 in a subnetwork with IPv6 addresses. Unset means
	// IPV4_ONLY.
	// +optional
	StackType StackType `json:"stackType,omitempty"`

	// aliasIPRanges are ranges of addresses that the network interface has beside its own, for the addresses of pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	AliasIPRanges []AliasIPRange `json:"aliasIPRanges,omitempty"`

	// canIPForward lets the instance send and receive packets with addresses that are not its own, as routing of pods without an
	// overlay needs it. Default: false.
	// +optional
	CanIPForward *bool `json:"canIPForward,omitempty"`

	// networkTags are the network tags, by which firewall rules and routes select instances.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	NetworkTags []string `json:"networkTags,omitempty"`

	// serviceAccount is the service account whose rights programs on the instance have. Unset means none.
	// +optional
	ServiceAccount *ServiceAccount `json:"serviceAccount,omitempty"`

	// labels are put on the instance and its persistent disks, at most 56. Those that begin with millwright- are set by the provider.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=56
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-z][a-z0-9_-]{0,62}$') && self[k].matches('^[a-z0-9_-]*$'))",message="keys and values of labels have lower-case letters, digits, _ and -, at most 63; a key begins with a letter"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('millwright-'))",message="labels that begin with millwright- are set by the provider: remove them from labels"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// metadata are custom metadata of the instance, for example serial-port-enable: "true". Those of the bootstrap data, user-data and
	// user-data-encoding, are set by the provider. No secrets belong here: whoever may read the instance reads them.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-zA-Z0-9_-]{1,128}$'))",message="keys of metadata have letters, digits, _ and -, at most 128"
	// +kubebuilder:validation:XValidation:rule="!('user-data' in self) && !('user-data-encoding' in self)",message="user-data and user-data-encoding hold the bootstrap data: remove them from metadata"
	Metadata map[string]MetadataValue `json:"metadata,omitempty"`

	// accelerators are accelerator cards beside those that the machine type has by itself. The instance is stopped for the maintenance of
	// its host then.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Accelerators []Accelerator `json:"accelerators,omitempty"`

	// provisioningModel is STANDARD, or SPOT for an instance that Compute Engine may take back at any time. Unset means STANDARD.
	// +optional
	ProvisioningModel ProvisioningModel `json:"provisioningModel,omitempty"`

	// instanceTerminationAction is what Compute Engine does with a spot instance that it takes back: DELETE, or STOP, which keeps its
	// disks, and their cost, until the Machine is deleted. It is never started again in either case. Unset means DELETE for spot
	// instances.
	// +optional
	InstanceTerminationAction InstanceTerminationAction `json:"instanceTerminationAction,omitempty"`

	// onHostMaintenance is what happens to the instance while its host is maintained: MIGRATE or TERMINATE. Unset means what
	// each machine type allows: TERMINATE for spot instances, with accelerators or confidentialType, and for types that cannot migrate (a2,
	// a3, a4, g2, g4, H4D, bare metal, TPUs, Z3 with more than 18 TB of local SSD), else MIGRATE.
	// +optional
	OnHostMaintenance OnHostMaintenance `json:"onHostMaintenance,omitempty"`

	// reservation is which reservations the instance may use. Unset means any that matches.
	// +optional
	Reservation *Reservation `json:"reservation,omitempty"`

	// shielded are the options of a Shielded VM. Unset means as Compute Engine and the image say.
	// +optional
	Shielded *Shielded `json:"shielded,omitempty"`

	// confidentialType makes the instance a Confidential VM, on machine types and images that allow it. Unset means none.
	// +optional
	ConfidentialType ConfidentialType `json:"confidentialType,omitempty"`

	// deletionProtection has Compute Engine refuse the deletion of the instance by anybody. The provider lifts it when the object is
	// deleted. Default: false.
	// +optional
	DeletionProtection *bool `json:"deletionProtection,omitempty"`
}
