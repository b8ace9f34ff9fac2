package arm

import (
	"fmt"
	"net/http"
	"slices"
)

// validDisks checks what depends on the type of a disk. Sources: https://learn.microsoft.com/azure/virtual-machines/disks-types, and for
// messages reports of users, which the README lists.
func (s *Server) validDisks(_ *request, doc *vmDocument) error {
	profile, size := doc.Properties.StorageProfile, s.options.Catalog.size(doc.Properties.HardwareProfile.VMSize)
	ultra := doc.Properties.AdditionalCapabilities != nil && doc.Properties.AdditionalCapabilities.UltraSSDEnabled
	if ultra && (len(doc.Zones) == 0 || !size.Ultra) {
		return badRequest("UltraSSD can be used only with Virtual Machine in an Availability Zone, and size %s must support it.", size.Name)
	}
	if os := profile.OSDisk; slices.Contains(uncached, skuOf(os.ManagedDisk)) {
		return badRequest("Storage account type '%s' is supported only for data disks, not for OS disk.", skuOf(os.ManagedDisk))
	} else if os.DiskSizeGB > maxOSDisk {
		return badRequest("Value '%d' of parameter 'osDisk.diskSizeGB' is out of range. The value must be between '1' and '%d', inclusive.",
			os.DiskSizeGB, maxOSDisk)
	}
	if len(profile.DataDisks) > size.DataDisks {
		return fail(http.StatusConflict, "OperationNotAllowed",
			"The maximum number of data disks allowed to be attached to a VM of this size is %d.", size.DataDisks)
	}
	for i := range profile.DataDisks {
		if err := validDataDisk(doc, &profile.DataDisks[i], ultra); err != nil {
			return err
		}
	}
	return nil
}

// uncached are the types that are for data disks alone, and without a cache.
var uncached = []string{"UltraSSD_LRS", "PremiumV2_LRS"}

// Sizes of disks in GiB.
const (
	maxOSDisk, maxDisk, maxUncachedDisk = 4095, 32767, 65536
)

func validDataDisk(doc *vmDocument, d *dataDisk, ultra bool) error {
	sku, limit := skuOf(d.ManagedDisk), int32(maxDisk)
	if slices.Contains(uncached, sku) {
		limit = maxUncachedDisk
	}
	switch {
	case sku == "UltraSSD_LRS" && !ultra:
		return badRequest("StorageAccountType UltraSSD_LRS can be used only when additionalCapabilities.ultraSSDEnabled is set.")
	case slices.Contains(uncached, sku) && d.Caching != "" && d.Caching != "None":
		return badRequest("Storage Account type %s is not supported with caching type %s. Please use caching type None.", sku, d.Caching)
	case sku == "PremiumV2_LRS" && len(doc.Zones) == 0:
		return badRequest("PremiumV2_LRS disks can be attached only to a Virtual Machine in an Availability Zone.")
	case d.DiskSizeGB > limit:
		return badRequest("Value '%d' of parameter 'dataDisk.diskSizeGB' is out of range. The value must be between '1' and '%d', inclusive.",
			d.DiskSizeGB, limit)
	case d.Caching != "" && d.Caching != "None" && d.DiskSizeGB > maxOSDisk:
		return badRequest("Disk caching is not supported for disks of 4 TiB and larger; disk of lun %d has %d GB.", d.Lun, d.DiskSizeGB)
	}
	return nil
}

// validEphemeral checks an OS disk on the host, see https://learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks.
func validEphemeral(doc *vmDocument, size *Size) error {
	os := doc.Properties.StorageProfile.OSDisk
	d := os.DiffDiskSettings
	if d == nil {
		return nil
	}
	room := map[string]int32{"CacheDisk": size.CacheGiB, "ResourceDisk": size.TempGiB, "NvmeDisk": size.NVMeGiB}
	placement := d.Placement
	for _, other := range []string{"CacheDisk", "ResourceDisk", "NvmeDisk"} {
		if placement == "" && room[other] > 0 {
			placement = other
		}
	}
	limit, known := room[placement]
	switch {
	case !size.Ephemeral:
		return notSupported("The VM size '%s' cannot have an ephemeral OS disk.", size.Name)
	case os.Caching != "ReadOnly":
		return badRequest("An ephemeral OS disk needs caching ReadOnly.")
	case d.Option != "Local" || !known:
		return badRequest("The value of parameter 'diffDiskSettings' is invalid.")
	case limit == 0:
		return notSupported("The Diff Disk Placement of type '%s' is not supported for VM size %s.", placement, size.Name)
	case os.DiskSizeGB > limit:
		return notSupported("OS disk of Ephemeral VM with size greater than %d GB is not allowed for VM size %s when the DiffDiskPlacement is %s.",
			limit, size.Name, placement)
	case doc.Properties.Priority == "Spot" && doc.Properties.EvictionPolicy != "Delete":
		return badRequest("A Spot VM with an ephemeral OS disk needs eviction policy Delete.")
	}
	return nil
}

func notSupported(format string, args ...any) *failure {
	return fail(http.StatusBadRequest, "NotSupported", "%s", fmt.Sprintf(format, args...))
}
