package instance_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

// A quota that is used up is of class Quota, whichever it is, and leaves room for a type of another family (karpenter-aws #1556, #5789).
func TestObserve_QuotaUsedUp_IsClassQuota(t *testing.T) {
	of := func(name string) func(*infrav1.GCPMachineSpec) {
		return func(s *infrav1.GCPMachineSpec) { s.MachineType = name }
	}
	for quota, change := range map[string]func(*infrav1.GCPMachineSpec){
		"us-central1/N2_CPUS": of("n2-standard-4"), "C3_CPUS": of("c3-standard-4"), "CPUS_PER_VM_FAMILY": of("c4-standard-4"),
		"PREEMPTIBLE_CPUS": func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.ProvisioningModel = "n2-standard-4", infrav1.ProvisioningModelSpot
		},
		"NVIDIA_L4_GPUS": of("g2-standard-4"),
		"NVIDIA_T4_GPUS": func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.Accelerators = "n1-standard-4", []infrav1.Accelerator{{Type: "nvidia-tesla-t4", Count: 1}}
		},
		"SSD_TOTAL_GB":     func(s *infrav1.GCPMachineSpec) { s.BootDisk = &infrav1.Disk{Type: "pd-ssd"} },
		"IN_USE_ADDRESSES": func(s *infrav1.GCPMachineSpec) { s.PublicIP = ptr.To(true) },
	} {
		f := newFixture(t, compute.Options{Quotas: map[string]int{quota: 0}})
		h := f.accepted(launch(zoneA, "one", 1, change))
		f.settle()
		i := f.observe(h)
		f.Expect(i.Err).NotTo(HaveOccurred(), quota)
		f.Expect(i.Value).To(And(HaveField("State", driverv1.InstanceFailed), HaveField("Refused", driver.ClassQuota),
			HaveField("RefusedAllTypes", quota == "SSD_TOTAL_GB" || quota == "IN_USE_ADDRESSES"), HaveField("StateCode", "QUOTA_EXCEEDED"),
			HaveField("StateMessage", ContainSubstring("in region us-central1"))), quota)
		f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0]).To(Equal(driver.Answer[[]string]{}), quota)
		f.running(launch(zoneA, "one", 2))
	}
}

// Refusals that name a quota at once are of the same class; those that name a rate are not.
func TestCreate_QuotaRefusal_IsClassQuota(t *testing.T) {
	for message, c := range map[string]struct {
		code     string
		expected driver.Class
		allTypes bool
	}{
		"Quota 'PREEMPTIBLE_CPUS' exceeded.  Limit: 8.0 in region us-central1.":                         {"quotaExceeded", driver.ClassQuota, false},
		"Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally.":                                      {"quotaExceeded", driver.ClassQuota, false},
		"Exceeded limit 'MAX_INSTANCES_IN_PROJECT'":                                                     {"limitExceeded", driver.ClassQuota, true},
		"Quota 'IN_USE_ADDRESSES' exceeded.  Limit: 4.0 in region us-central1.":                         {"quotaExceeded", driver.ClassQuota, true},
		"Quota 'STATIC_ADDRESSES' exceeded.  Limit: 1.0 in region us-central1.":                         {"quotaExceeded", driver.ClassQuota, true},
		"Quota 'SSD_TOTAL_GB' exceeded.  Limit: 500.0 in region us-central1.":                           {"quotaExceeded", driver.ClassQuota, true},
		"Quota 'DISKS_TOTAL_GB' exceeded.  Limit: 4096.0 in region us-central1.":                        {"quotaExceeded", driver.ClassQuota, true},
		"Quota 'INSTANCES' exceeded.  Limit: 24.0 in region us-central1.":                               {"quotaExceeded", driver.ClassQuota, true},
		"Quota 'LOCAL_SSD_TOTAL_GB' exceeded.  Limit: 6000.0 in region us-central1.":                    {"quotaExceeded", driver.ClassQuota, false},
		"Quota exceeded for quota group 'WriteRequests' and limit 'Write requests per minute'":          {"rateLimitExceeded", driver.ClassThrottle, false},
		"The zone 'projects/p/zones/z' does not have enough resources available to fulfill the request": {"ZONE_RESOURCE_POOL_EXHAUSTED", driver.ClassCapacity, false},
	} {
		f := newFixture(t, compute.Options{})
		f.fault(simulator.Fault{Action: "instances.insert", Error: &simulator.APIError{Code: c.code, Message: message, Status: 403}})
		_, err := f.Create(f.ctx, launch(zoneA, "one", 1))
		f.class(err, c.expected)
		f.Expect(err).To(And(MatchError(ContainSubstring(message)), HaveField("AllTypes", c.allTypes)), message)
	}
}
