package v1alpha1

// Image names an image in one way.
// +kubebuilder:validation:XValidation:rule="[has(self.id), has(self.marketplace), has(self.communityGalleryImageID), has(self.sharedGalleryImageID)].filter(x, x).size() == 1",message="give exactly one of id, marketplace, communityGalleryImageID and sharedGalleryImageID"
type Image struct {
	// id is the resource ID of a managed image, or of an image or an image version in a gallery. Without a version the latest is taken, and
	// machines of one set may differ. It may also be the ID of an image of a community or shared gallery, or the URN of a marketplace image,
	// publisher:offer:sku:version, as az takes them.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`(?i)^((azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Compute/(images/[A-Za-z0-9._-]{1,80}|galleries/[A-Za-z0-9._-]{1,80}/images/[A-Za-z0-9._-]{1,80}(/versions/([0-9.]+|latest))?)|/(community|shared)Galleries/[A-Za-z0-9._-]{1,80}/images/[A-Za-z0-9._-]{1,80}(/versions/([0-9.]+|latest))?|[^:/\s]+:[^:/\s]+:[^:/\s]+:[^:/\s]+)/?$`
	ID string `json:"id,omitempty"`

	// marketplace is an image of the Azure Marketplace.
	// +optional
	Marketplace *MarketplaceImage `json:"marketplace,omitempty"`

	// communityGalleryImageID names an image of a community gallery: /communityGalleries/<gallery>/images/<image>/versions/<version>.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`(?i)^/communityGalleries/[A-Za-z0-9._-]{1,80}/images/[A-Za-z0-9._-]{1,80}(/versions/([0-9.]+|latest))?/?$`
	CommunityGalleryImageID string `json:"communityGalleryImageID,omitempty"`

	// sharedGalleryImageID names an image of a gallery that is shared with the subscription or its tenant:
	// /sharedGalleries/<gallery>/images/<image>/versions/<version>.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`(?i)^/sharedGalleries/[A-Za-z0-9._-]{1,80}/images/[A-Za-z0-9._-]{1,80}(/versions/([0-9.]+|latest))?/?$`
	SharedGalleryImageID string `json:"sharedGalleryImageID,omitempty"`

	// plan is the purchase plan of an image that has one, whatever names it. Its terms have to be accepted in the subscription beforehand.
	// +optional
	Plan *Plan `json:"plan,omitempty"`
}

// MarketplaceImage is an image of the Azure Marketplace.
type MarketplaceImage struct {
	// publisher of the image.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Publisher string `json:"publisher,omitempty"`
	// offer of the publisher.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Offer string `json:"offer,omitempty"`
	// sku of the offer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	SKU string `json:"sku,omitempty"`
	// version of the image, or latest, with which machines of one set may differ.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
}

// Plan is the purchase plan of an image.
type Plan struct {
	// publisher of the plan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Publisher string `json:"publisher,omitempty"`
	// product of the plan, which is the offer of the image.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Product string `json:"product,omitempty"`
	// name of the plan, which is the SKU of the image.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`
}

// OSDisk is the disk of the operating system.
// +kubebuilder:validation:XValidation:rule="!has(self.ephemeral) || !has(self.caching) || self.caching == 'ReadOnly'",message="an ephemeral OS disk has caching ReadOnly: remove caching",fieldPath=".caching"
// +kubebuilder:validation:XValidation:rule="!has(self.ephemeral) || !has(self.diskEncryptionSetID)",message="an ephemeral OS disk has no disk encryption set: remove diskEncryptionSetID, and use securityProfile.encryptionAtHost",fieldPath=".diskEncryptionSetID"
type OSDisk struct {
	// sizeGiB is the size in GiB, at least that of the image. Unset means that of the image.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4095
	SizeGiB *int32 `json:"sizeGiB,omitempty"`

	// storageAccountType is the type of the disk. UltraSSD_LRS and PremiumV2_LRS are for data disks alone. Unset means Azure's default for the
	// size of the machine.
	// +optional
	// +kubebuilder:validation:Enum=Standard_LRS;StandardSSD_LRS;StandardSSD_ZRS;Premium_LRS;Premium_ZRS
	StorageAccountType string `json:"storageAccountType,omitempty"`

	// caching by the host. Unset means Azure's default for the type of the disk.
	// +optional
	// +kubebuilder:validation:Enum=None;ReadOnly;ReadWrite
	Caching string `json:"caching,omitempty"`

	// diskEncryptionSetID is the resource ID of the disk encryption set with the key of the disk. Unset means keys that Azure manages.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Compute/diskEncryptionSets/[A-Za-z0-9._-]{1,80}/?$`
	DiskEncryptionSetID string `json:"diskEncryptionSetID,omitempty"`

	// ephemeral puts the disk onto the local storage of the host: faster, without cost, and lost with the host. The sizes of the spec must
	// have it.
	// +optional
	Ephemeral *EphemeralDisk `json:"ephemeral,omitempty"`
}

// EphemeralDisk is an OS disk on the host.
type EphemeralDisk struct {
	// placement of the disk. Unset means the cache of the host, or the resource disk where there is no cache.
	// +optional
	// +kubebuilder:validation:Enum=CacheDisk;ResourceDisk;NvmeDisk
	Placement string `json:"placement,omitempty"`
}

// DataDisk is an empty disk.
// +kubebuilder:validation:XValidation:rule="!has(self.storageAccountType) || !(self.storageAccountType in ['UltraSSD_LRS', 'PremiumV2_LRS']) || !has(self.caching) || self.caching == 'None'",message="Azure caches no disk of type UltraSSD_LRS or PremiumV2_LRS: remove caching, or set it to None",fieldPath=".caching"
// +kubebuilder:validation:XValidation:rule="self.sizeGiB <= 32767 || has(self.storageAccountType) && self.storageAccountType in ['UltraSSD_LRS', 'PremiumV2_LRS']",message="a disk has at most 32767 GiB, and 65536 with storageAccountType UltraSSD_LRS or PremiumV2_LRS: lower sizeGiB",fieldPath=".sizeGiB"
// +kubebuilder:validation:XValidation:rule="self.sizeGiB < 4096 || !has(self.caching) || self.caching == 'None'",message="Azure caches disks of less than 4096 GiB alone: remove caching, or set it to None",fieldPath=".caching"
type DataDisk struct {
	// lun is the logical unit number by which the operating system finds the disk, 0 to 63.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	LUN *int32 `json:"lun,omitempty"`

	// sizeGiB is the size in GiB: at most 32767, and 65536 of types UltraSSD_LRS and PremiumV2_LRS.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	SizeGiB int32 `json:"sizeGiB,omitempty"`

	// storageAccountType is the type of the disk. Unset means Azure's default for the size of the machine.
	// +optional
	// +kubebuilder:validation:Enum=Standard_LRS;StandardSSD_LRS;StandardSSD_ZRS;Premium_LRS;Premium_ZRS;PremiumV2_LRS;UltraSSD_LRS
	StorageAccountType string `json:"storageAccountType,omitempty"`

	// caching by the host; None for types UltraSSD_LRS and PremiumV2_LRS, and from 4096 GiB on. Unset means Azure's default for the type of
	// the disk.
	// +optional
	// +kubebuilder:validation:Enum=None;ReadOnly;ReadWrite
	Caching string `json:"caching,omitempty"`

	// diskEncryptionSetID is the resource ID of the disk encryption set with the key of the disk. Unset means keys that Azure manages.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:Pattern=`(?i)^(azure://)?/subscriptions/[0-9a-f-]{36}/resourceGroups/[A-Za-z0-9._()-]{1,90}/providers/Microsoft.Compute/diskEncryptionSets/[A-Za-z0-9._-]{1,80}/?$`
	DiskEncryptionSetID string `json:"diskEncryptionSetID,omitempty"`
}
