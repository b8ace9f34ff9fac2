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
	{regexp.MustCompile(`(?i)CPU Architecture`), func(s *infrav1.AzureMachineSpec) string {
		return fmt.Sprintf("The image is %s: choose an image or a size of the other architecture", nameOfImage(&s.Image))
	}},
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
