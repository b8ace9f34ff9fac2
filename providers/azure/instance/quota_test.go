package instance_test

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

// TestCreate_QuotaExceeded_IsOfClassQuota for each quota that Azure has: openshift/release #12840, scylla-cluster-tests #4994,
// neonKUBE #1671. The size of another family still launches where the quota is one of a family.
func TestCreate_QuotaExceeded_IsOfClassQuota(t *testing.T) {
	spot := func(s *infrav1.AzureMachineSpec) { s.Spot = &infrav1.Spot{EvictionPolicy: "Delete"} }
	public := func(s *infrav1.AzureMachineSpec) { s.PublicIP = ptr(true) }
	for quota, row := range map[string]struct {
		words       string
		change      func(*infrav1.AzureMachineSpec)
		otherFamily bool
	}{
		"standardDSv5Family": {"exceeding approved standardDSv5Family Cores quota", func(*infrav1.AzureMachineSpec) {}, true},
		arm.QuotaRegion:      {"exceeding approved Total Regional Cores quota", func(*infrav1.AzureMachineSpec) {}, false},
		arm.QuotaSpot:        {"exceeding approved LowPriorityCores quota", spot, false},
		arm.QuotaAddresses:   {"PublicIPCountLimitReached", public, false},
	} {
		catalog := arm.DefaultCatalog()
		catalog.Quotas = map[string]int{quota: 1}
		f := newFixture(t, arm.Options{Catalog: catalog})
		if quota == arm.QuotaAddresses {
			f.accepted(launch("m0", row.change))
		}
		_, err := f.Create(f.ctx, launch("m1", row.change))
		f.class(err, driver.ClassQuota)
		f.Expect(err).To(MatchError(ContainSubstring(row.words)))
		_, err = f.Create(f.ctx, launch("m2", row.change, func(s *infrav1.AzureMachineSpec) { s.VMSize = "Standard_D4as_v5" }))
		if row.otherFamily {
			f.Expect(err).NotTo(HaveOccurred())
		} else {
			f.class(err, driver.ClassQuota)
		}
	}
}

// TestCreate_QuotaInOtherWords_IsOfClassQuota: terraform #10056 has an older message, and some providers have codes.
func TestCreate_QuotaInOtherWords_IsOfClassQuota(t *testing.T) {
	for _, failure := range []simulator.APIError{
		{Code: "OperationNotAllowed", Message: "Operation results in exceeding quota limits of Core. Maximum allowed: 20, Current in use: 20."},
		{Code: "QuotaExceeded", Message: "Operation could not be completed as it results in exceeding approved Total Regional Spot Cores quota."},
		{Code: "ResourceQuotaExceeded"}, {Code: "SubscriptionQuotaExceeded"},
	} {
		f := newFixture(t, arm.Options{})
		f.fault(simulator.Fault{Action: "VirtualMachines_CreateOrUpdate", Error: &failure})
		_, err := f.Create(f.ctx, launch("m1"))
		f.class(err, driver.ClassQuota)
		f.cloud.ClearFaults()
		f.fault(simulator.Fault{Action: "VirtualMachines_CreateOrUpdate", LaunchFailure: &simulator.Failure{Code: failure.Code,
			Message: failure.Message}})
		h := f.running(launch("m2"))
		f.Expect(f.observe(h).Value.Refused).To(Equal(driver.ClassQuota), "also if it shows late")
	}
}

// TestCreate_AzureCLI24127_SpecThatNeverFits_IsTerminalWithRemedy: a repetition changes nothing, and the message says what does.
// Reports: image-builder
// #1875, FederalAVD #20, azure-cli #31234, azure-cli #27975, bosh-azure-cpi-release #674, terraform #7389, skyplane #755.
func TestCreate_AzureCLI24127_SpecThatNeverFits_IsTerminalWithRemedy(t *testing.T) {
	for words, change := range map[string]func(*infrav1.AzureMachineSpec){
		"node-scsi/versions/1.36.3 does not list the disk controller": func(s *infrav1.AzureMachineSpec) {
			s.VMSize, s.Image.ID = "Standard_D8s_v6", arm.ImageWithoutControllers
		},
		"DiskControllerTypes=SCSI,NVMe": func(s *infrav1.AzureMachineSpec) {
			s.VMSize, s.Image.ID, s.DiskControllerType = "Standard_E4bds_v5", arm.ImageWithoutControllers, "NVMe"
		},
		"does not have the controller of diskControllerType": func(s *infrav1.AzureMachineSpec) { s.DiskControllerType = "NVMe" },
		"register it with az feature register": func(s *infrav1.AzureMachineSpec) {
			s.SecurityProfile = &infrav1.SecurityProfile{Type: "Standard"}
		},
		"runs confidential machines alone": func(s *infrav1.AzureMachineSpec) { s.VMSize = "Standard_DC2as_v5" },
		"does not support securityProfile.type ConfidentialVM": func(s *infrav1.AzureMachineSpec) {
			s.SecurityProfile = &infrav1.SecurityProfile{Type: "ConfidentialVM", VTPM: ptr(true)}
		},
		"does not have the security type ConfidentialVM: choose an image": func(s *infrav1.AzureMachineSpec) {
			s.VMSize, s.SecurityProfile = "Standard_EC4as_v5", &infrav1.SecurityProfile{Type: "ConfidentialVM", VTPM: ptr(true)}
		},
		"image or a size of the other architecture": func(s *infrav1.AzureMachineSpec) { s.VMSize = "Standard_D2pds_v5" },
		"maximum number of data disks allowed": func(s *infrav1.AzureMachineSpec) {
			for i := range int32(5) {
				s.DataDisks = append(s.DataDisks, infrav1.DataDisk{LUN: &i, SizeGiB: 10})
			}
		},
		"exceeds the maximum allowed for the virtual machine size": func(s *infrav1.AzureMachineSpec) {
			s.ExtraInterfaces = []infrav1.NetworkInterface{{SubnetID: arm.DefaultSubnet}, {SubnetID: arm.DefaultSubnet}}
		},
		"size greater than 150 GB is not allowed": func(s *infrav1.AzureMachineSpec) {
			s.VMSize, s.OSDisk = "Standard_D4ds_v5", &infrav1.OSDisk{SizeGiB: ptr(int32(2048)), Ephemeral: &infrav1.EphemeralDisk{Placement: "ResourceDisk"}}
		},
	} {
		f := newFixture(t, arm.Options{})
		_, err := f.Create(f.ctx, launch("m1", change))
		f.class(err, driver.ClassTerminal)
		f.Expect(err).To(MatchError(ContainSubstring(words)))
	}
}
