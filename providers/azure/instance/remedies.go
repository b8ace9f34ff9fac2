package instance

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// remedies lists error messages of Azure that do not say what to do, each with the remedy.
var remedies = []struct {
	message *regexp.Regexp
	remedy  func(*infrav1.AzureMachineSpec) string
}{
	{regexp.MustCompile(`(?i)cannot boot with OS image or disk`), func(s *infrav1.AzureMachineSpec) string {
		return fmt.Sprintf("The definition of the image %s does not list the disk controller of the size: create it with the feature "+
			"DiskControllerTypes=SCSI,NVMe, or choose a size with the controller of the image", nameOfImage(&s.Image))
	}},
	{regexp.MustCompile(`(?i)cannot boot with DiskControllerType`), func(s *infrav1.AzureMachineSpec) string {
		return "The size does not have the controller of diskControllerType: remove the field, or choose another size"
	}},
	{regexp.MustCompile(`(?i)parameter securityProfile\.securityType is invalid`), func(s *infrav1.AzureMachineSpec) string {
		return "The type Standard needs the feature UseStandardSecurityType: register it with " +
			"az feature register --namespace Microsoft.Compute --name UseStandardSecurityType"
	}},
	{regexp.MustCompile(`(?i)not supported for creation of VMs.* with '<NULL>' security type`), func(*infrav1.AzureMachineSpec) string {
		return "The size runs confidential machines alone: set securityProfile.type to ConfidentialVM and securityProfile.vTPM to true and " +
			"choose an image for confidential machines, or choose another size"
	}},
	{regexp.MustCompile(`(?i)not supported for creation of VMs.* security type`), func(s *infrav1.AzureMachineSpec) string {
		return fmt.Sprintf("The size does not support securityProfile.type %s: choose another size, or another type", typeOf(s))
	}},
	{regexp.MustCompile(`(?i)(use of \w+ setting|SecurityType '\w+') is not supported (for the provided|by given) image`),
		func(s *infrav1.AzureMachineSpec) string {
			return fmt.Sprintf("The definition of the image %s does not have the security type %s: choose an image whose definition has it, "+
				"such as Canonical:ubuntu-24_04-lts:cvm:latest for ConfidentialVM, or another securityProfile.type", nameOfImage(&s.Image), typeOf(s))
		}},
	{regexp.MustCompile(`(?i)gallery image only supports creation of VMs`), func(s *infrav1.AzureMachineSpec) string {
		return "Set securityProfile.type to the security type that the message names, and securityProfile.vTPM to true"
	}},
	{regexp.MustCompile(`(?i)CPU Architecture`), func(s *infrav1.AzureMachineSpec) string {
		return fmt.Sprintf("The image is %s: choose an image or a size of the other architecture", nameOfImage(&s.Image))
	}},
}

// typeOf is the security type of the spec.
func typeOf(s *infrav1.AzureMachineSpec) string {
	if s.SecurityProfile == nil {
		return "none"
	}
	return cmp.Or(s.SecurityProfile.Type, "none")
}

// withRemedy adds to the error of a launch what to do about it, if its message does not say that.
func withRemedy(err error, spec *infrav1.AzureMachineSpec) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	for _, r := range remedies {
		if message := e.Err.Error(); r.message.MatchString(message) {
			changed := *e
			changed.Err = &apiMessage{message + " " + r.remedy(spec), e.Err}
			return &changed
		}
	}
	return err
}

// nameOfImage is what names the image in the spec.
func nameOfImage(image *infrav1.Image) string {
	if m := image.Marketplace; m != nil {
		return m.Publisher + ":" + m.Offer + ":" + m.SKU + ":" + m.Version
	}
	return cmp.Or(image.ID, image.CommunityGalleryImageID, image.SharedGalleryImageID)
}
