package arm

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// maxCustomData is how many bytes custom data and user data have at most, see
// https://learn.microsoft.com/azure/virtual-machines/custom-data and …/user-data.
const maxCustomData = 65535

var vmName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}[A-Za-z0-9_]$|^[A-Za-z0-9]$`)

// validate checks a launch as Compute does before it accepts it.
func (s *Server) validate(in *request, doc *vmDocument) error {
	p := &doc.Properties
	if p.HardwareProfile == nil || p.StorageProfile == nil || p.OSProfile == nil || p.NetworkProfile == nil {
		return badRequest("Required parameter 'hardwareProfile', 'storageProfile', 'osProfile' or 'networkProfile' is missing (null).")
	}
	if !vmName.MatchString(in.name) {
		return fail(http.StatusBadRequest, "InvalidResourceName", "The Azure resource name '%s' is invalid.", in.name)
	}
	if doc.Location != s.options.Catalog.Location {
		return fail(http.StatusBadRequest, "LocationNotAvailableForResourceType",
			"The provided location '%s' is not available for resource type "+
				"'Microsoft.Compute/virtualMachines'.", doc.Location)
	}
	if err := validTags(doc.Tags); err != nil {
		return err
	}
	for _, check := range []func(*request, *vmDocument) error{s.validSize, s.validImage, s.validStorage, s.validDisks,
		s.validHardware, s.validOS,
		s.validNetwork, s.validOptions} {
		if err := check(in, doc); err != nil {
			return err
		}
	}
	return nil
}

// validTags are https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources: 50 at most, of 512 and 256 characters.
func validTags(tags map[string]string) error {
	if len(tags) > 50 {
		return fail(http.StatusBadRequest, "InvalidTags", "The number of tags exceeds the maximum of 50.")
	}
	folded := map[string]bool{}
	for k, v := range tags {
		if folded[strings.ToLower(k)] {
			return fail(http.StatusBadRequest, "InvalidTags", "The tag name '%s' is given twice; names are case-insensitive.", k)
		}
		folded[strings.ToLower(k)] = true
		if k == "" || len(k) > 512 || len(v) > 256 || strings.ContainsAny(k, `<>%&\?/`) {
			return fail(http.StatusBadRequest, "InvalidTagNameCharacters",
				"The tag names '%s' have reserved characters '<,>,%%,&,\\,?,/' or are too long.", k)
		}
	}
	return nil
}

func (s *Server) validSize(_ *request, doc *vmDocument) error {
	size := s.options.Catalog.size(doc.Properties.HardwareProfile.VMSize)
	if size == nil {
		return badRequest("The value %s provided for the VM size is not valid.", doc.Properties.HardwareProfile.VMSize)
	}
	doc.Properties.HardwareProfile.VMSize = size.Name
	if len(doc.Zones) > 1 {
		return fail(http.StatusBadRequest, "InvalidZones", "A virtual machine is in one availability zone at most.")
	}
	for _, z := range doc.Zones {
		if !slices.Contains(s.options.Catalog.Zones, z) {
			return fail(http.StatusBadRequest, "InvalidAvailabilityZone", "The zone(s) '%s' for resource is not supported in location '%s'.", z,
				doc.Location)
		}
		if size.Zones != nil && !slices.Contains(size.Zones, z) {
			return fail(http.StatusConflict, "SkuNotAvailable",
				"The requested VM size '%s' is currently not available in location '%s' zone '%s' for subscription. "+
					"Please try another size or deploy to a different location or zones.", size.Name, doc.Location, z)
		}
	}
	return nil
}

func (s *Server) validImage(_ *request, doc *vmDocument) error {
	ref := doc.Properties.StorageProfile.ImageReference
	if ref == nil {
		return badRequest("Required parameter 'imageReference' is missing (null).")
	}
	id := imageID(ref)
	image := s.options.Catalog.image(id)
	if image == nil {
		if ref.Publisher != "" {
			return fail(http.StatusNotFound, "PlatformImageNotFound", "The platform image '%s' is not available.", id)
		}
		return fail(http.StatusNotFound, "GalleryImageNotFound", "The gallery image %s is not available in %s region.", id, doc.Location)
	}
	if image.Plan && doc.Plan == nil {
		return fail(http.StatusBadRequest, "VMMarketplaceInvalidInput",
			"Creating a virtual machine from Marketplace image requires Plan information in the request.")
	}
	os := doc.Properties.StorageProfile.OSDisk
	if os == nil {
		return badRequest("Required parameter 'osDisk' is missing (null).")
	}
	if os.DiskSizeGB == 0 {
		os.DiskSizeGB = image.SizeGiB
	}
	if os.DiskSizeGB < image.SizeGiB {
		return badRequest("The specified disk size %d GB is smaller than the size of the corresponding disk in the VM image: %d GB.", os.DiskSizeGB, image.SizeGiB)
	}
	return nil
}

// imageID is what the catalog names the image by.
func imageID(ref *imageReference) string {
	if ref.Publisher != "" {
		return strings.Join([]string{ref.Publisher, ref.Offer, ref.SKU, ref.Version}, ":")
	}
	return ref.ID + ref.CommunityGalleryImageID + ref.SharedGalleryImageID
}

func (s *Server) validStorage(in *request, doc *vmDocument) error {
	profile := doc.Properties.StorageProfile
	os, size := profile.OSDisk, s.options.Catalog.size(doc.Properties.HardwareProfile.VMSize)
	if os.CreateOption != "FromImage" {
		return badRequest("The value '%s' of parameter 'osDisk.createOption' is invalid or not simulated.", os.CreateOption)
	}
	if os.Name == "" {
		os.Name = in.name + "_OsDisk_1_" + s.ids.suffix()
	}
	if err := validEphemeral(doc, size); err != nil {
		return err
	}
	names, luns := []string{os.Name}, []int32{}
	for i := range profile.DataDisks {
		d := &profile.DataDisks[i]
		if d.Name == "" {
			d.Name = in.name + "_disk_" + s.ids.suffix()
		}
		if d.CreateOption != "Empty" || d.DiskSizeGB < 1 || slices.Contains(luns, d.Lun) || d.Lun < 0 || d.Lun > 63 {
			return badRequest("The value of parameter 'dataDisks[%d]' is invalid or not simulated.", i)
		}
		names, luns = append(names, d.Name), append(luns, d.Lun)
	}
	for _, sku := range append([]string{skuOf(os.ManagedDisk)}, dataSKUs(profile.DataDisks)...) {
		if strings.HasPrefix(sku, "Premium") && !size.Premium {
			return badRequest("Requested operation cannot be performed because the VM size %s does not support the storage account type %s.", size.Name, sku)
		}
	}
	for _, name := range names {
		if s.disks[key(resourceID(in.subscription, in.group, compute, "disks", name))] != nil {
			return fail(http.StatusConflict, "ConflictingUserInput",
				"Disk '%s' already exists in resource group %s. Only CreateOption.Attach is supported.", name, in.group)
		}
	}
	return nil
}

func dataSKUs(disks []dataDisk) []string {
	var out []string
	for _, d := range disks {
		out = append(out, skuOf(d.ManagedDisk))
	}
	return out
}

func (s *Server) validOS(_ *request, doc *vmDocument) error {
	p := doc.Properties.OSProfile
	switch {
	case p.ComputerName == "" || len(p.ComputerName) > 64:
		return badRequest("Linux host name cannot exceed 64 characters in length or contain the following characters.")
	case p.AdminUsername == "" || slices.Contains([]string{"admin", "administrator", "root", "test", "user"},
		strings.ToLower(p.AdminUsername)):
		return badRequest("The Admin Username specified is not allowed.")
	case p.LinuxConfiguration == nil || !p.LinuxConfiguration.DisablePasswordAuthentication && p.AdminPassword == "":
		return badRequest("Authentication using either SSH or by user name and password must be enabled in Linux profile.")
	case p.LinuxConfiguration.DisablePasswordAuthentication && (p.LinuxConfiguration.SSH == nil ||
		len(p.LinuxConfiguration.SSH.PublicKeys) == 0):
		return badRequest("At least one SSH public key must be specified when password authentication is disabled.")
	}
	for _, k := range publicKeys(p) {
		if k.Path != "/home/"+p.AdminUsername+"/.ssh/authorized_keys" {
			return badRequest("Destination path for SSH public keys is currently limited to its default value /home/%s/.ssh/authorized_keys.", p.AdminUsername)
		}
		if !strings.HasPrefix(k.KeyData, "ssh-rsa ") && !strings.HasPrefix(k.KeyData, "ssh-ed25519 ") {
			return badRequest("The value of parameter linuxConfiguration.ssh.publicKeys.keyData is invalid.")
		}
	}
	for name, value := range map[string]string{"customData": p.CustomData, "userData": doc.Properties.UserData} {
		raw, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(raw) > maxCustomData {
			return badRequest("%s must be Base64-encoded and have %d bytes at most.", name, maxCustomData)
		}
	}
	return nil
}

func publicKeys(p *osProfile) []publicKey {
	if p.LinuxConfiguration == nil || p.LinuxConfiguration.SSH == nil {
		return nil
	}
	return p.LinuxConfiguration.SSH.PublicKeys
}
