package v1alpha1

import (
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// GCPMachineSpec is the desired state of one Compute Engine instance. All of it but providerID is fixed when the object is created: an
// instance is replaced, never changed.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fallbackMachineTypes) || !(self.machineType in self.fallbackMachineTypes)",message="machineType is tried first anyway: remove it from fallbackMachineTypes",fieldPath=".fallbackMachineTypes"
// +kubebuilder:validation:XValidation:rule="!has(self.subnetwork) || !self.subnetwork.contains('regions/') || self.zones[0].find('[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$').startsWith(self.subnetwork.find('regions/[a-z]+-[a-z]+[0-9]+/').split('/')[1] + '-')",message="the subnetwork is of another region than the zones: an instance needs one of its own region",fieldPath=".subnetwork"
// +kubebuilder:validation:XValidation:rule="!has(self.instanceTerminationAction) || has(self.provisioningModel) && self.provisioningModel == 'SPOT'",message="instanceTerminationAction says what happens to a spot instance: set provisioningModel to SPOT, or remove it",fieldPath=".instanceTerminationAction"
// +kubebuilder:validation:XValidation:rule="!has(self.onHostMaintenance) || self.onHostMaintenance != 'MIGRATE' || !has(self.accelerators) && (!has(self.provisioningModel) || self.provisioningModel != 'SPOT')",message="Compute Engine migrates neither spot instances nor those with accelerators: set onHostMaintenance to TERMINATE, or remove it",fieldPath=".onHostMaintenance"
// +kubebuilder:validation:XValidation:rule="!has(self.aliasIPRanges) || has(self.subnetwork)",message="alias IP ranges are of a subnetwork: set subnetwork",fieldPath=".aliasIPRanges"
// +kubebuilder:validation:XValidation:rule="!has(self.onHostMaintenance) || self.onHostMaintenance != 'MIGRATE' || !self.machineType.matches('(^|/)(a[0-9]|g[2-9]|ct[0-9]|tpu|h4d-)[^/]*$|-metal$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, !t.matches('(^|/)(a[0-9]|g[2-9]|ct[0-9]|tpu|h4d-)[^/]*$|-metal$')))",message="Compute Engine does not migrate types with accelerators, bare metal and H4D: remove onHostMaintenance, and each machine type gets what it allows",fieldPath=".onHostMaintenance"
// +kubebuilder:validation:XValidation:rule="!has(self.onHostMaintenance) || self.onHostMaintenance != 'MIGRATE' || !has(self.confidentialType) || self.confidentialType == 'SEV' && self.machineType.matches('(^|/)(n2d|c3d)-[^/]*$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, t.matches('(^|/)(n2d|c3d)-[^/]*$')))",message="Confidential VMs do not migrate, except SEV on n2d and c3d: set onHostMaintenance to TERMINATE, or remove it",fieldPath=".onHostMaintenance"
// +kubebuilder:validation:XValidation:rule="!has(self.onHostMaintenance) || self.onHostMaintenance != 'TERMINATE' || has(self.provisioningModel) && self.provisioningModel == 'SPOT' || !self.machineType.matches('(^|/)(e2-|z3-highmem-([0-9]|[123][0-9]|4[0-4])-)[^/]*$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, !t.matches('(^|/)(e2-|z3-highmem-([0-9]|[123][0-9]|4[0-4])-)[^/]*$')))",message="Compute Engine always migrates instances of e2, and of z3 types up to 44 vCPUs, that are not spot: remove onHostMaintenance",fieldPath=".onHostMaintenance"
// +kubebuilder:validation:XValidation:rule="!has(self.accelerators) || self.machineType.matches('(^|/)(n1-|custom-|a[0-9]|g[2-9])[^/]*$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, t.matches('(^|/)(n1-|custom-|a[0-9]|g[2-9])[^/]*$')))",message="accelerators can be added to n1 and n1 custom types, beside those that a and g types have: choose such a machine type",fieldPath=".accelerators"
// +kubebuilder:validation:XValidation:rule="!has(self.accelerators) || !self.accelerators.exists(a, a.type.matches('nvidia-tesla-(t4|p4|p100|v100)[^/]*$')) || self.machineType.matches('(^|/)(n1-|custom-)[^/]*$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, t.matches('(^|/)(n1-|custom-)[^/]*$')))",message="T4, P4, P100 and V100 cards can be added to n1 and n1 custom types alone: choose such a machine type",fieldPath=".accelerators"
// +kubebuilder:validation:XValidation:rule="!has(self.confidentialType) || self.confidentialType != 'SEV' || [[self.machineType], has(self.fallbackMachineTypes) ? self.fallbackMachineTypes : []].all(l, l.all(t, !t.matches('(^|/)((e2|f1|g1|n1|custom|n2|n4|n4a|n4d|t2a|t2d|c2|c3|c4|c4a|h3|h4d|m1|m2|m3|m4|x4|z3|a2|a3|a4|a4x|g2)-[^/]*|g4-standard-(6|12|24|96|192|384))$|-metal$')))",message="SEV is for c2d, c3d, c4d, n2d and g4-standard-48 types: choose such a machine type",fieldPath=".confidentialType"
// +kubebuilder:validation:XValidation:rule="!has(self.confidentialType) || self.confidentialType != 'SEV_SNP' || [[self.machineType], has(self.fallbackMachineTypes) ? self.fallbackMachineTypes : []].all(l, l.all(t, !t.matches('(^|/)((e2|f1|g1|n1|custom|n2|n4|n4a|n4d|t2a|t2d|c2|c3|c4|c4a|h3|h4d|m1|m2|m3|m4|x4|z3|a2|a3|a4|a4x|g2)-[^/]*|(c2d|c3d|c4d|g4)-[^/]*)$|-metal$')))",message="SEV_SNP is for n2d types: choose such a machine type",fieldPath=".confidentialType"
// +kubebuilder:validation:XValidation:rule="!has(self.confidentialType) || self.confidentialType != 'TDX' || [[self.machineType], has(self.fallbackMachineTypes) ? self.fallbackMachineTypes : []].all(l, l.all(t, !t.matches('(^|/)((e2|f1|g1|n1|custom|n2|n2d|n4|n4a|n4d|t2a|t2d|c2|c2d|c3d|c4|c4a|c4d|h3|h4d|m1|m2|m3|m4|x4|z3|a2|a4|a4x|g2|g4)-[^/]*|c3-(highcpu|highmem)-[^/]*|a3-(highgpu-[248]g|megagpu-8g|edgegpu-8g|ultragpu-8g)[^/]*)$|-metal$')))",message="TDX is for c3-standard types and a3-highgpu-1g: choose such a machine type",fieldPath=".confidentialType"
// +kubebuilder:validation:XValidation:rule="!has(self.confidentialType) || !has(self.disks) || self.disks.size() < 40",message="a Confidential VM has 40 disks at most, with the boot disk: remove some",fieldPath=".disks"
// +kubebuilder:validation:XValidation:rule="!((has(self.bootDisk) && has(self.bootDisk.type) ? [self.bootDisk.type] : []) + (has(self.disks) ? self.disks.filter(d, has(d.type)).map(d, d.type) : [])).exists(t, t.matches('(^|/)hyperdisk-balanced[^/]*$')) || !self.machineType.matches('(^|/)(e2|n1|custom|f1|g1|n2|n2d|t2a|t2d|c2|c2d|a2|g2)-[^/]*$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, !t.matches('(^|/)(e2|n1|custom|f1|g1|n2|n2d|t2a|t2d|c2|c2d|a2|g2)-[^/]*$')))",message="e2, n1, n2, n2d, t2a, t2d, c2, c2d, a2 and g2 types do not take hyperdisk-balanced: use pd-balanced, or another machine type",fieldPath=".machineType"
// +kubebuilder:validation:XValidation:rule="!((has(self.bootDisk) && has(self.bootDisk.type) ? [self.bootDisk.type] : []) + (has(self.disks) ? self.disks.filter(d, has(d.type)).map(d, d.type) : [])).exists(t, t.matches('(^|/)pd-[^/]*$')) || !self.machineType.matches('(^|/)(n4|n4a|n4d|c4|c4a|c4d|h4d|m4|x4|a4|a4x|g4|ct6e)-[^/]*$|-metal$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, !t.matches('(^|/)(n4|n4a|n4d|c4|c4a|c4d|h4d|m4|x4|a4|a4x|g4|ct6e)-[^/]*$|-metal$')))",message="n4, c4, h4d, m4, x4, a4, g4 and bare metal types take no persistent disks (pd-…): use hyperdisk-balanced, or remove the type of the boot disk",fieldPath=".machineType"
// +kubebuilder:validation:XValidation:rule="!has(self.disks) || !self.disks.exists(d, has(d.type) && d.type.endsWith('local-ssd')) || !self.machineType.matches('(^|/)(e2|n4|n4a|n4d|t2a|t2d|c3|c3d|c4|c4a|c4d|h3|h4d|m2|m4|x4|z3|a3|a4|a4x)-[^/]*$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, !t.matches('(^|/)(e2|n4|n4a|n4d|t2a|t2d|c3|c3d|c4|c4a|c4d|h3|h4d|m2|m4|x4|z3|a3|a4|a4x)-[^/]*$')))",message="local SSDs cannot be added to these machine types: choose one with -lssd in its name, which has them, or n1, n2, n2d, c2, c2d",fieldPath=".disks"
// +kubebuilder:validation:XValidation:rule="!has(self.disks) || self.disks.filter(d, has(d.type) && d.type.endsWith('local-ssd')).size() <= 8 || self.disks.filter(d, has(d.type) && d.type.endsWith('local-ssd')).size() in [16, 24, 32]",message="Compute Engine attaches 1 to 8, 16, 24 or 32 local SSDs: change their number",fieldPath=".disks"
// +kubebuilder:validation:XValidation:rule="!has(self.disks) || !(self.disks.filter(d, has(d.type) && d.type.endsWith('local-ssd')).size() in [3, 5, 6, 7]) || !self.machineType.matches('(^|/)(n2|n2d|c2|c2d|a2|g2)-[^/]*$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, !t.matches('(^|/)(n2|n2d|c2|c2d|a2|g2)-[^/]*$')))",message="n2, n2d, c2, c2d, a2 and g2 types take 1, 2, 4, 8, 16 or 24 local SSDs: change their number",fieldPath=".disks"
// +kubebuilder:validation:XValidation:rule="!((has(self.bootDisk) && has(self.bootDisk.type) ? [self.bootDisk.type] : []) + (has(self.disks) ? self.disks.filter(d, has(d.type)).map(d, d.type) : [])).exists(t, t.matches('(^|/)hyperdisk-(extreme|throughput|ml)$')) || !self.machineType.matches('(^|/)(e2|n1|custom|f1|g1|t2a|c2|c2d)-[^/]*$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, !t.matches('(^|/)(e2|n1|custom|f1|g1|t2a|c2|c2d)-[^/]*$')))",message="e2, n1, t2a, c2 and c2d types take no Hyperdisks: use pd-balanced, pd-ssd or pd-standard, or another machine type",fieldPath=".machineType"
// +kubebuilder:validation:XValidation:rule="!((has(self.bootDisk) && has(self.bootDisk.type) ? [self.bootDisk.type] : []) + (has(self.disks) ? self.disks.filter(d, has(d.type)).map(d, d.type) : [])).exists(t, t.matches('(^|/)pd-extreme$')) || !self.machineType.matches('(^|/)(e2|n1|custom|f1|g1|n2d|t2d|t2a|c2|c2d|c3|c3d|h3|z3|a2|a3|g2)-[^/]*$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, !t.matches('(^|/)(e2|n1|custom|f1|g1|n2d|t2d|t2a|c2|c2d|c3|c3d|h3|z3|a2|a3|g2)-[^/]*$')))",message="pd-extreme is for m1, m2, m3 and large n2 types: use pd-ssd, or another machine type",fieldPath=".machineType"
// +kubebuilder:validation:XValidation:rule="!((has(self.bootDisk) && has(self.bootDisk.type) ? [self.bootDisk.type] : []) + (has(self.disks) ? self.disks.filter(d, has(d.type)).map(d, d.type) : [])).exists(t, t.matches('(^|/)pd-standard$')) || !self.machineType.matches('(^|/)(c3|c3d|h3|m3|z3|a3)-[^/]*$') && (!has(self.fallbackMachineTypes) || self.fallbackMachineTypes.all(t, !t.matches('(^|/)(c3|c3d|h3|m3|z3|a3)-[^/]*$')))",message="c3, c3d, h3, m3, z3 and a3 types do not take pd-standard: use pd-balanced, or another machine type",fieldPath=".machineType"
type GCPMachineSpec struct {
	driverv1.MachineSpec `json:",inline"`

	// identityRef names the GCPIdentity with whose credentials Google Cloud is called for this instance. That has to allow the namespace of
	// this object. Unset means the credentials of the provider's process, unless that runs with --require-identity.
	// +optional
	IdentityRef *driverv1.IdentityReference `json:"identityRef,omitempty"`

	// project is the ID of the Google Cloud project that the instance is in, for example my-project, or example.com:my-project. Also as
	// projects/<id> or as a URL.
	// +required
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^(((https:)?//[a-z0-9.-]+/(compute/[a-z0-9]+/)?)?projects/)?([a-z0-9.-]+:)?[a-z][a-z0-9-]*[a-z0-9]$')",message="give the ID of the project, for example my-project or example.com:my-project; for a project number, gcloud projects describe <number> prints it"
	Project string `json:"project,omitempty"`

	// zones are those that the instance may be in, all of one region, for example us-central1-a. They are the failure domains; the
	// Machine's, when it has one, leaves only that. Among what is left, instances are spread, and a zone without capacity is passed over
	// for a while. Also as zones/<zone> or as URLs.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^((https:)?//[a-z0-9.-]+/(compute/[a-z0-9]+/)?)?((projects/(([a-z0-9.-]+:)?[a-z0-9-]+)/)?zones/)?[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$`
	// +kubebuilder:validation:XValidation:rule="self.all(z, z.find('[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$').split('-')[0] == self[0].find('[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$').split('-')[0] && z.find('[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$').split('-')[1] == self[0].find('[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$').split('-')[1])",message="the zones are of different regions: give those of one"
	Zones []string `json:"zones,omitempty"`

	// machineType is the machine type, for example n2-standard-4. Custom types are allowed, for example n2-custom-4-8192.
	// Also as zones/<zone>/machineTypes/<type> or as a URL, whose zone does not matter.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^((https:)?//[a-z0-9.-]+/(compute/[a-z0-9]+/)?)?((projects/(([a-z0-9.-]+:)?[a-z0-9-]+)/)?zones/[a-z0-9-]+/machineTypes/)?[a-z][a-z0-9-]*[a-z0-9]$`
	MachineType string `json:"machineType,omitempty"`

	// fallbackMachineTypes are machine types that do as well, in the order in which they are tried while no zone has capacity for those
	// before: at most 15, each once, and not machineType itself. They must be able to boot the same image. Unset means that the launch
	// waits for capacity of machineType.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^((https:)?//[a-z0-9.-]+/(compute/[a-z0-9]+/)?)?((projects/(([a-z0-9.-]+:)?[a-z0-9-]+)/)?zones/[a-z0-9-]+/machineTypes/)?[a-z][a-z0-9-]*[a-z0-9]$`
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x == y))",message="each fallback machine type is tried once: remove the repetition"
	FallbackMachineTypes []string `json:"fallbackMachineTypes,omitempty"`

	// image is the machine image of the boot disk.
	// +required
	Image ImageReference `json:"image,omitempty,omitzero"`

	// bootDisk is the disk that the instance boots from. Unset means one as large as the image, of the type that Compute Engine chooses.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || !self.type.matches('(^|/)(hyperdisk-(throughput|extreme|ml)|local-ssd)$')",message="this type of disk cannot be a boot disk: use pd-balanced, or hyperdisk-balanced where the machine type needs it",fieldPath=".type"
	// +kubebuilder:validation:XValidation:rule="!has(self.sizeGiB) || self.sizeGiB >= 10",message="a boot disk has 10 GiB at least: raise sizeGiB",fieldPath=".sizeGiB"
	BootDisk *Disk `json:"bootDisk,omitempty"`

	// disks are disks beside the boot disk, created empty and deleted with the instance.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(d, has(d.type))",message="each disk needs a type, for example pd-balanced, or local-ssd"
	// +kubebuilder:validation:XValidation:rule="self.all(d, has(d.sizeGiB) || has(d.type) && d.type.endsWith('local-ssd'))",message="each disk needs a size: set sizeGiB; local SSDs have a size of their own"
	Disks []Disk `json:"disks,omitempty"`

	// subnetwork is the subnetwork of the network interface, in the region of the zones, with its project, which is the host project for
	// a shared VPC: for example projects/my-host/regions/us-central1/subnetworks/nodes. A URL is
	// taken as well, and the name alone for one of the instance's project. Unset means that of the network named default.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^((https:)?//[a-z0-9.-]+/(compute/[a-z0-9]+/)?)?((projects/(([a-z0-9.-]+:)?[a-z0-9-]+)/)?regions/[a-z]+-[a-z]+[0-9]+/subnetworks/)?[a-z]([-a-z0-9]*[a-z0-9])?$`
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
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[\\\\p{Ll}\\\\p{Lo}][\\\\p{Ll}\\\\p{Lo}\\\\p{N}_-]{0,62}$') && self[k].matches('^[\\\\p{Ll}\\\\p{Lo}\\\\p{N}_-]*$') && bytes(k).size() <= 128 && bytes(self[k]).size() <= 128)",message="keys and values of labels have lower-case letters, also international ones, digits, _ and -, at most 63 and 128 bytes; a key begins with a letter"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('millwright-'))",message="labels that begin with millwright- are set by the provider: remove them from labels"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// metadata are custom metadata of the instance, for example serial-port-enable: "true", a startup-script or ssh-keys: each value of
	// 256 KiB at most, and 512 KiB together with the bootstrap data. Those of the bootstrap data, user-data and
	// user-data-encoding, are set by the provider. No secrets belong here: whoever may read the instance reads them.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-zA-Z0-9_-]{1,128}$'))",message="keys of metadata have letters, digits, _ and -, at most 128"
	// +kubebuilder:validation:XValidation:rule="self.map(k, self[k].size() + k.size()).sum() <= 524288",message="all metadata together have 512 KiB at most: shorten the longest values, or let startup-script download its parts"
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

	// confidentialType makes the instance a Confidential VM: SEV on c2d, c3d, c4d, n2d and g4-standard-48, SEV_SNP on n2d, with AMD Milan as
	// the least processor, TDX on c3-standard types and a3-highgpu-1g, with images that allow it. Unset means none.
	// +optional
	ConfidentialType ConfidentialType `json:"confidentialType,omitempty"`

	// deletionProtection has Compute Engine refuse the deletion of the instance by anybody. The provider lifts it when the object is
	// deleted. Default: false.
	// +optional
	DeletionProtection *bool `json:"deletionProtection,omitempty"`
}
