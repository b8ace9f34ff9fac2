package v1alpha1

// ImageReference names a machine image.
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.family)",message="exactly one of name and family must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.project) || [has(self.name) ? self.name : 'n', has(self.family) ? self.family : 'f'].all(n, !n.contains('projects/') && !n.matches('^([a-z0-9.-]+:)?[a-z0-9-]+/[^/]+$') || n.startsWith('family/'))",message="name or family has the project already: remove project",fieldPath=".project"
type ImageReference struct {
	// project that the image is in, for example ubuntu-os-cloud. Unset means the project of the instance.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(((https:)?//[a-z0-9.-]+/(compute/[a-z0-9]+/)?)?projects/)?(([a-z0-9.-]+:)?[a-z0-9-]+)$`
	Project string `json:"project,omitempty"`

	// name of the image. Also as projects/<project>/global/images/<name>, with family/ before the name for the latest of a family, as
	// <project>/<name>, which Terraform and kOps have, or as a URL.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^((https:)?//[a-z0-9.-]+/(compute/[a-z0-9]+/)?)?((projects/(([a-z0-9.-]+:)?[a-z0-9-]+)/)?global/images/(family/)?|(([a-z0-9.-]+:)?[a-z0-9-]+)/)?[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// family of images, of which the latest is taken that is not deprecated at the time of the launch.
	// Also as projects/<project>/global/images/family/<family>, as <project>/<family> or as a URL.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^((https:)?//[a-z0-9.-]+/(compute/[a-z0-9]+/)?)?(((projects/(([a-z0-9.-]+:)?[a-z0-9-]+)/)?global/images/)?family/|(([a-z0-9.-]+:)?[a-z0-9-]+)/)?[a-z]([-a-z0-9]*[a-z0-9])?$`
	Family string `json:"family,omitempty"`
}

// Disk describes a disk. What is unset is left to the image or to Compute Engine.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.type) || !self.type.endsWith('local-ssd') || !has(self.sizeGiB) && !has(self.kmsKeyName) && !has(self.provisionedIOPS) && !has(self.provisionedThroughputMiBps)",message="a local SSD has a size and a speed of its own, and no key: set type alone"
// +kubebuilder:validation:XValidation:rule="!has(self.sizeGiB) || !has(self.type) || !self.type.matches('(^|/)pd-[^/]*$') || self.sizeGiB >= 10",message="a persistent disk has 10 GiB at least: raise sizeGiB",fieldPath=".sizeGiB"
// +kubebuilder:validation:XValidation:rule="!has(self.sizeGiB) || !has(self.type) || !self.type.matches('(^|/)pd-extreme$') || self.sizeGiB >= 500",message="a disk of type pd-extreme has 500 GiB at least: raise sizeGiB",fieldPath=".sizeGiB"
// +kubebuilder:validation:XValidation:rule="!has(self.sizeGiB) || !has(self.type) || !self.type.matches('(^|/)hyperdisk-extreme$') || self.sizeGiB >= 64",message="a disk of type hyperdisk-extreme has 64 GiB at least: raise sizeGiB",fieldPath=".sizeGiB"
// +kubebuilder:validation:XValidation:rule="!has(self.sizeGiB) || !has(self.type) || !self.type.matches('(^|/)hyperdisk-throughput$') || self.sizeGiB >= 2048 && self.sizeGiB <= 32768",message="a disk of type hyperdisk-throughput has 2048 to 32768 GiB: change sizeGiB",fieldPath=".sizeGiB"
// +kubebuilder:validation:XValidation:rule="!has(self.provisionedIOPS) || !has(self.type) || self.type.matches('(^|/)(pd-extreme|hyperdisk-(balanced|balanced-high-availability|extreme))$')",message="this type of disk has no provisioned IOPS: remove provisionedIOPS, or use pd-extreme, hyperdisk-balanced or hyperdisk-extreme",fieldPath=".provisionedIOPS"
// +kubebuilder:validation:XValidation:rule="!has(self.provisionedThroughputMiBps) || !has(self.type) || self.type.matches('(^|/)hyperdisk-(balanced|balanced-high-availability|throughput|ml)$')",message="this type of disk has no provisioned throughput: remove provisionedThroughputMiBps, or use hyperdisk-balanced or hyperdisk-throughput",fieldPath=".provisionedThroughputMiBps"
// +kubebuilder:validation:XValidation:rule="!has(self.provisionedIOPS) || !has(self.type) || !self.type.matches('(^|/)pd-extreme$') || self.provisionedIOPS >= 10000 && self.provisionedIOPS <= 120000",message="pd-extreme has 10000 to 120000 IOPS: change provisionedIOPS",fieldPath=".provisionedIOPS"
// +kubebuilder:validation:XValidation:rule="!has(self.provisionedIOPS) || !has(self.type) || !self.type.matches('(^|/)hyperdisk-balanced[^/]*$') || self.provisionedIOPS >= 2000 && self.provisionedIOPS <= 160000",message="hyperdisk-balanced has 2000 to 160000 IOPS: change provisionedIOPS",fieldPath=".provisionedIOPS"
// +kubebuilder:validation:XValidation:rule="!has(self.provisionedIOPS) || !has(self.type) || !self.type.matches('(^|/)hyperdisk-extreme$') || self.provisionedIOPS <= 350000",message="hyperdisk-extreme has 350000 IOPS at most: lower provisionedIOPS",fieldPath=".provisionedIOPS"
// +kubebuilder:validation:XValidation:rule="!has(self.provisionedThroughputMiBps) || !has(self.type) || !self.type.matches('(^|/)hyperdisk-balanced[^/]*$') || self.provisionedThroughputMiBps >= 140 && self.provisionedThroughputMiBps <= 2400",message="hyperdisk-balanced has 140 to 2400 MiB/s: change provisionedThroughputMiBps",fieldPath=".provisionedThroughputMiBps"
type Disk struct {
	// type of the disk, for example pd-balanced, hyperdisk-balanced or, not for the boot disk, local-ssd, which loses its content when
	// the instance stops. Also as zones/<zone>/diskTypes/<type> or as a URL, whose zone does not matter.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^((https:)?//[a-z0-9.-]+/(compute/[a-z0-9]+/)?)?((projects/(([a-z0-9.-]+:)?[a-z0-9-]+)/)?zones/[a-z0-9-]+/diskTypes/)?[a-z][a-z0-9-]*[a-z0-9]$`
	Type string `json:"type,omitempty"`

	// sizeGiB is the size in GiB: at least that of the image for the boot disk.
	// +optional
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:Maximum=65536
	SizeGiB *int32 `json:"sizeGiB,omitempty"`

	// kmsKeyName is the Cloud KMS key that encrypts the disk, for example projects/p/locations/us-central1/keyRings/r/cryptoKeys/k.
	// Compute Engine's service agent needs to be allowed to use it. Unset means a key of Google's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^((https:)?//cloudkms[.]googleapis[.]com/(v1/)?)?projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+(/cryptoKeyVersions/[0-9]+)?$`
	KMSKeyName string `json:"kmsKeyName,omitempty"`

	// provisionedIOPS is the number of operations per second that is paid for, where the type has that.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500000
	ProvisionedIOPS *int32 `json:"provisionedIOPS,omitempty"`

	// provisionedThroughputMiBps is the throughput in MiB/s that is paid for, where the type has that.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	ProvisionedThroughputMiBps *int32 `json:"provisionedThroughputMiBps,omitempty"`
}

// StackType is which addresses a network interface has.
// +kubebuilder:validation:Enum=IPV4_ONLY;IPV4_IPV6
type StackType string

const (
	// StackTypeIPv4Only is IPv4 alone.
	StackTypeIPv4Only StackType = "IPV4_ONLY"
	// StackTypeDual is IPv4 and IPv6.
	StackTypeDual StackType = "IPV4_IPV6"
)

// AliasIPRange is a range of addresses of a network interface.
type AliasIPRange struct {
	// ipCIDRRange is the range, or its length for one that Compute Engine chooses, for example /24.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:Pattern=`^(([0-9]{1,3}[.]){3}[0-9]{1,3})?/([0-9]|[12][0-9]|3[0-2])$|^([0-9]{1,3}[.]){3}[0-9]{1,3}$`
	IPCIDRRange string `json:"ipCIDRRange,omitempty"`

	// secondaryRange is the name of the secondary range of the subnetwork that it is taken from. Unset means the primary range.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	SecondaryRange string `json:"secondaryRange,omitempty"`
}

// ServiceAccount is the service account of an instance.
type ServiceAccount struct {
	// email of the service account, or default for the project's default one of Compute Engine. Also as projects/-/serviceAccounts/<email>
	// or serviceAccount:<email>, as IAM writes it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(default|(projects/[^/ ]+/serviceAccounts/|serviceAccount:)?[^@/: ]+@[^@/: ]+)$`
	Email string `json:"email,omitempty"`

	// scopes limit what tokens of the instance may be used for. Unset means https://www.googleapis.com/auth/cloud-platform, with which
	// the account's roles alone decide. Also by gcloud's short names, for example storage-ro, or default and gke-default, which stand for
	// several.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^https://|^(bigquery|cloud-platform|cloud-source-repos|cloud-source-repos-ro|compute-ro|compute-rw|datastore|default|gke-default|logging-write|monitoring|monitoring-read|monitoring-write|pubsub|service-control|service-management|sql|sql-admin|storage-full|storage-ro|storage-rw|taskqueue|trace|useraccounts-ro|useraccounts-rw|userinfo-email)$`
	Scopes []string `json:"scopes,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// MetadataValue is the value of a custom metadata entry.
// +kubebuilder:validation:MaxLength=262144
type MetadataValue string

// Accelerator is a kind of accelerator cards.
// +kubebuilder:validation:XValidation:rule="!self.type.matches('nvidia-tesla-(t4|p4|p100)(-vws)?$') || self.count in [1, 2, 4]",message="an instance has 1, 2 or 4 cards of this type: change count",fieldPath=".count"
// +kubebuilder:validation:XValidation:rule="!self.type.matches('nvidia-tesla-v100$') || self.count in [1, 2, 4, 8]",message="an instance has 1, 2, 4 or 8 cards of this type: change count",fieldPath=".count"
type Accelerator struct {
	// type of the accelerator, for example nvidia-tesla-t4. Also as zones/<zone>/acceleratorTypes/<type> or as a URL, whose zone does not
	// matter.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^((https:)?//[a-z0-9.-]+/(compute/[a-z0-9]+/)?)?((projects/(([a-z0-9.-]+:)?[a-z0-9-]+)/)?zones/[a-z0-9-]+/acceleratorTypes/)?[a-z][a-z0-9-]*[a-z0-9]$`
	Type string `json:"type,omitempty"`

	// count is how many there are.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Count int32 `json:"count,omitempty"`
}

// ProvisioningModel is how capacity is bought.
// +kubebuilder:validation:Enum=STANDARD;SPOT
type ProvisioningModel string

const (
	// ProvisioningModelStandard is capacity that stays.
	ProvisioningModelStandard ProvisioningModel = "STANDARD"
	// ProvisioningModelSpot is capacity that may be taken back at any time.
	ProvisioningModelSpot ProvisioningModel = "SPOT"
)

// InstanceTerminationAction is what happens to a spot instance that is taken back.
// +kubebuilder:validation:Enum=DELETE;STOP
type InstanceTerminationAction string

const (
	// InstanceTerminationActionDelete deletes it.
	InstanceTerminationActionDelete InstanceTerminationAction = "DELETE"
	// InstanceTerminationActionStop stops it.
	InstanceTerminationActionStop InstanceTerminationAction = "STOP"
)

// OnHostMaintenance is what happens to an instance while its host is maintained.
// +kubebuilder:validation:Enum=MIGRATE;TERMINATE
type OnHostMaintenance string

const (
	// OnHostMaintenanceMigrate moves it to another host while it runs.
	OnHostMaintenanceMigrate OnHostMaintenance = "MIGRATE"
	// OnHostMaintenanceTerminate stops it.
	OnHostMaintenanceTerminate OnHostMaintenance = "TERMINATE"
)

// Reservation says which reservations an instance may use.
// +kubebuilder:validation:XValidation:rule="has(self.name) == (self.affinity == 'SPECIFIC_RESERVATION')",message="SPECIFIC_RESERVATION needs the name of the reservation, and nothing else has one"
type Reservation struct {
	// affinity is ANY_RESERVATION, NO_RESERVATION or SPECIFIC_RESERVATION.
	// +required
	Affinity ReservationAffinity `json:"affinity,omitempty"`

	// name of the reservation; for a shared one of another project projects/<project>/reservations/<name>. Also
	// as projects/<project>/zones/<zone>/reservations/<name> or as a URL.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^((https:)?//[a-z0-9.-]+/(compute/[a-z0-9]+/)?)?((projects/(([a-z0-9.-]+:)?[a-z0-9-]+)/)?(zones/[a-z0-9-]+/)?reservations/)?[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
}

// ReservationAffinity is which reservations an instance may use.
// +kubebuilder:validation:Enum=ANY_RESERVATION;NO_RESERVATION;SPECIFIC_RESERVATION
type ReservationAffinity string

const (
	// ReservationAffinitySpecific is one reservation, by its name.
	ReservationAffinitySpecific ReservationAffinity = "SPECIFIC_RESERVATION"
)

// Shielded are the options of a Shielded VM. What is unset is left to Compute Engine and the image.
// +kubebuilder:validation:MinProperties=1
type Shielded struct {
	// secureBoot lets the instance boot signed software alone. Default: false.
	// +optional
	SecureBoot *bool `json:"secureBoot,omitempty"`

	// vTPM gives the instance a virtual trusted platform module. Default: true.
	// +optional
	VTPM *bool `json:"vTPM,omitempty"`

	// integrityMonitoring compares what the instance boots with what it booted first. Default: true.
	// +optional
	IntegrityMonitoring *bool `json:"integrityMonitoring,omitempty"`
}

// ConfidentialType is the technology of a Confidential VM.
// +kubebuilder:validation:Enum=SEV;SEV_SNP;TDX
type ConfidentialType string
