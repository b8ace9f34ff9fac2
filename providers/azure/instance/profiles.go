package instance

import (
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
)

func planOf(spec *infrav1.AzureMachineSpec) *armcompute.Plan {
	p := spec.Image.Plan
	if p == nil {
		return nil
	}
	return &armcompute.Plan{Publisher: &p.Publisher, Product: &p.Product, Name: &p.Name}
}

func identitiesOf(spec *infrav1.AzureMachineSpec) *armcompute.VirtualMachineIdentity {
	if len(spec.UserAssignedIdentities) == 0 {
		return nil
	}
	identities := map[string]*armcompute.UserAssignedIdentitiesValue{}
	for _, id := range spec.UserAssignedIdentities {
		identities[id] = &armcompute.UserAssignedIdentitiesValue{}
	}
	return &armcompute.VirtualMachineIdentity{Type: ptr(armcompute.ResourceIdentityTypeUserAssigned), UserAssignedIdentities: identities}
}

// storageOf are image and disks. Disks have no names, so that Azure makes unique ones, and go with the machine.
func storageOf(spec *infrav1.AzureMachineSpec) *armcompute.StorageProfile {
	profile := &armcompute.StorageProfile{ImageReference: imageOf(&spec.Image), OSDisk: osDiskOf(spec.OSDisk)}
	if spec.DiskControllerType != "" {
		profile.DiskControllerType = ptr(armcompute.DiskControllerTypes(spec.DiskControllerType))
	}
	for i := range spec.DataDisks {
		disk := &spec.DataDisks[i]
		profile.DataDisks = append(profile.DataDisks, &armcompute.DataDisk{
			Lun: disk.LUN, CreateOption: ptr(armcompute.DiskCreateOptionTypesEmpty), DiskSizeGB: &disk.SizeGiB, Caching: cachingOf(disk.Caching),
			DeleteOption: ptr(armcompute.DiskDeleteOptionTypesDelete), ManagedDisk: managedOf(disk.StorageAccountType, disk.DiskEncryptionSetID),
		})
	}
	return profile
}

func imageOf(image *infrav1.Image) *armcompute.ImageReference {
	switch {
	case image.Marketplace != nil:
		m := image.Marketplace
		return &armcompute.ImageReference{Publisher: &m.Publisher, Offer: &m.Offer, SKU: &m.SKU, Version: &m.Version}
	case image.CommunityGalleryImageID != "":
		return &armcompute.ImageReference{CommunityGalleryImageID: &image.CommunityGalleryImageID}
	case image.SharedGalleryImageID != "":
		return &armcompute.ImageReference{SharedGalleryImageID: &image.SharedGalleryImageID}
	}
	return &armcompute.ImageReference{ID: &image.ID}
}

func osDiskOf(spec *infrav1.OSDisk) *armcompute.OSDisk {
	disk := &armcompute.OSDisk{
		CreateOption: ptr(armcompute.DiskCreateOptionTypesFromImage), DeleteOption: ptr(armcompute.DiskDeleteOptionTypesDelete),
		OSType: ptr(armcompute.OperatingSystemTypesLinux),
	}
	if spec == nil {
		return disk
	}
	disk.DiskSizeGB, disk.Caching = spec.SizeGiB, cachingOf(spec.Caching)
	disk.ManagedDisk = managedOf(spec.StorageAccountType, spec.DiskEncryptionSetID)
	if e := spec.Ephemeral; e != nil {
		disk.Caching = ptr(armcompute.CachingTypesReadOnly)
		disk.DiffDiskSettings = &armcompute.DiffDiskSettings{Option: ptr(armcompute.DiffDiskOptionsLocal)}
		if e.Placement != "" {
			disk.DiffDiskSettings.Placement = ptr(armcompute.DiffDiskPlacement(e.Placement))
		}
	}
	return disk
}

func cachingOf(value string) *armcompute.CachingTypes {
	if value == "" {
		return nil
	}
	return ptr(armcompute.CachingTypes(value))
}

func managedOf(kind, encryptionSet string) *armcompute.ManagedDiskParameters {
	if kind == "" && encryptionSet == "" {
		return nil
	}
	managed := &armcompute.ManagedDiskParameters{}
	if kind != "" {
		managed.StorageAccountType = ptr(armcompute.StorageAccountTypes(kind))
	}
	if encryptionSet != "" {
		managed.DiskEncryptionSet = &armcompute.DiskEncryptionSetParameters{ID: &encryptionSet}
	}
	return managed
}

func securityOf(s *infrav1.SecurityProfile) *armcompute.SecurityProfile {
	profile := &armcompute.SecurityProfile{EncryptionAtHost: s.EncryptionAtHost}
	if s.Type != "" {
		profile.SecurityType = ptr(armcompute.SecurityTypes(s.Type))
	}
	if s.SecureBoot != nil || s.VTPM != nil { // Azure refuses settings of UEFI with the type Standard.
		profile.UefiSettings = &armcompute.UefiSettings{SecureBootEnabled: s.SecureBoot, VTpmEnabled: s.VTPM}
	}
	return profile
}

// confide has the state of a confidential machine encrypted.
func confide(disk *armcompute.OSDisk) {
	if disk.ManagedDisk == nil {
		disk.ManagedDisk = &armcompute.ManagedDiskParameters{}
	}
	disk.ManagedDisk.SecurityProfile = &armcompute.VMDiskSecurityProfile{
		SecurityEncryptionType: ptr(armcompute.SecurityEncryptionTypesVMGuestStateOnly),
	}
}
