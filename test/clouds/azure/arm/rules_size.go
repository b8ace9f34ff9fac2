package arm

import (
	"cmp"
	"net/http"
	"slices"
)

// validHardware checks that size, image, security type and disk controller fit. Messages are those that users report, see the README.
func (s *Server) validHardware(_ *request, doc *vmDocument) error {
	size := s.options.Catalog.size(doc.Properties.HardwareProfile.VMSize)
	image := s.options.Catalog.image(imageID(doc.Properties.StorageProfile.ImageReference))
	architecture, generation := cmp.Or(image.Architecture, "x64"), cmp.Or(image.Generation, "V2")
	switch {
	case architecture != size.Architecture:
		return fail(http.StatusBadRequest, "BadRequest", "Cannot create a VM of size '%s' because this VM size only supports a CPU Architecture "+
			"of '%s', but an image or disk with CPU Architecture '%s' was given.", size.Name, size.Architecture, architecture)
	case !slices.Contains(size.Generations, generation):
		return fail(http.StatusBadRequest, "BadRequest", "The selected VM size '%s' cannot boot Hypervisor Generation '%s'.", size.Name,
			generation[1:])
	}
	if err := validController(doc, size, image); err != nil {
		return err
	}
	return s.validSecurity(doc, size, image)
}

// validController checks the disk controller: https://learn.microsoft.com/azure/virtual-machines/nvme-overview.
func validController(doc *vmDocument, size *Size, image *Image) error {
	const query = " Please query sku api at https://aka.ms/azure-compute-skus to determine supported disk controller types for the VM size."
	wanted, offered := doc.Properties.StorageProfile.DiskControllerType, image.Controllers
	if len(offered) == 0 {
		offered = []string{"SCSI"}
	}
	switch {
	case wanted == "":
		if slices.ContainsFunc(size.Controllers, func(c string) bool { return slices.Contains(offered, c) }) {
			return nil // The platform chooses one.
		}
	case !slices.Contains([]string{"SCSI", "NVMe"}, wanted):
		return badRequest("The value of parameter 'diskControllerType' is invalid.")
	case !slices.Contains(size.Controllers, wanted):
		return badRequest("The VM size '%s' cannot boot with DiskControllerType '%s'. Please check that the disk controller type provided is "+
			"one of the supported disk controller types for the VM size '%s'.%s", size.Name, wanted, size.Name, query)
	case slices.Contains(offered, wanted):
		return nil
	}
	return badRequest("The VM size '%s' cannot boot with OS image or disk. Please check that disk controller types supported by the OS image "+
		"or disk is one of the supported disk controller types for the VM size '%s'.%s", size.Name, size.Name, query)
}

// validSecurity checks trusted launch (https://learn.microsoft.com/azure/virtual-machines/trusted-launch), confidential machines
// (https://learn.microsoft.com/azure/confidential-computing/confidential-vm-overview) and encryption at host.
func (s *Server) validSecurity(doc *vmDocument, size *Size, image *Image) error {
	p := doc.Properties.SecurityProfile
	if p == nil {
		p = &securityProfile{}
	}
	encrypted := encryptsState(doc.Properties.StorageProfile.OSDisk)
	switch {
	case p.EncryptionAtHost && !slices.Contains(s.options.Catalog.Features, FeatureEncryptionAtHost):
		return badRequest("The property 'securityProfile.encryptionAtHost' is not valid because the 'Microsoft.Compute/EncryptionAtHost' feature " +
			"is not enabled for this subscription.")
	case p.EncryptionAtHost && !size.EncryptionAtHost:
		return badRequest("The VM size %s does not support encryption at host.", size.Name)
	case encrypted && p.SecurityType != "ConfidentialVM":
		return badRequest("securityEncryptionType can be set for ConfidentialVM alone.")
	}
	switch p.SecurityType {
	case "":
		return withoutSecurity(p, size, image)
	case "Standard":
		return s.standardSecurity(p, size)
	case "TrustedLaunch":
		return trustedLaunch(size, image)
	case "ConfidentialVM":
		return confidential(p, size, image, encrypted)
	}
	return badRequest("The value of parameter securityProfile.securityType is invalid.")
}

func encryptsState(os *osDisk) bool {
	return os.ManagedDisk != nil && os.ManagedDisk.SecurityProfile != nil && os.ManagedDisk.SecurityProfile.SecurityEncryptionType != ""
}

func withoutSecurity(p *securityProfile, size *Size, image *Image) error {
	switch {
	case size.Confidential != "":
		return unsupportedSecurity(size, "<NULL>")
	case p.UefiSettings != nil:
		return badRequest("Use of UEFI settings is not supported without a security type.")
	case image.SecurityType == "TrustedLaunch" || image.SecurityType == "ConfidentialVM":
		return fail(http.StatusBadRequest, "BadRequest",
			"The provided gallery image only supports creation of VMs and VM Scale Sets with '%s' security type.", image.SecurityType)
	}
	return nil
}

func (s *Server) standardSecurity(p *securityProfile, size *Size) error {
	switch {
	case size.Confidential != "":
		return unsupportedSecurity(size, "Standard")
	case !slices.Contains(s.options.Catalog.Features, FeatureStandardSecurity):
		return badRequest("The value of parameter securityProfile.securityType is invalid.")
	case p.UefiSettings != nil:
		return badRequest("Use of UEFI settings is not supported when security type is 'Standard'.")
	}
	return nil
}

func trustedLaunch(size *Size, image *Image) error {
	switch {
	case size.NoTrustedLaunch || size.Confidential != "" || !slices.Contains(size.Generations, "V2"):
		return unsupportedSecurity(size, "TrustedLaunch")
	case image.SecurityType != "TrustedLaunchSupported" && image.SecurityType != "TrustedLaunch":
		return fail(http.StatusBadRequest, "BadRequest",
			"Use of TrustedLaunch setting is not supported for the provided image. Please select Trusted Launch Supported Gen2 OS Image.")
	}
	return nil
}

func confidential(p *securityProfile, size *Size, image *Image, encrypted bool) error {
	switch {
	case size.Confidential == "":
		return unsupportedSecurity(size, "ConfidentialVM")
	case image.SecurityType != "ConfidentialVMSupported" && image.SecurityType != "ConfidentialVM":
		return fail(http.StatusBadRequest, "BadRequest", "Use of ConfidentialVM setting is not supported for the provided image.")
	case !encrypted || p.UefiSettings == nil || !p.UefiSettings.VTpmEnabled:
		return badRequest("A ConfidentialVM needs osDisk.managedDisk.securityProfile.securityEncryptionType and uefiSettings.vTpmEnabled.")
	}
	return nil
}

func unsupportedSecurity(size *Size, security string) *failure {
	return fail(http.StatusBadRequest, "BadRequest",
		"The VM size '%s' is not supported for creation of VMs and Virtual Machine Scale Set with '%s' security type.", size.Name, security)
}
