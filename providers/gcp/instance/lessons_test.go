package instance_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"millwright.dev/providers/driver"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

// TestOpenShiftInstaller9169TheQuotaOfFilteredLists (openshift/installer #9169): all machines of a project share one list, and so do those
// of a batch; one that is refused for the quota is throttled, and concludes nothing.
func TestOpenShiftInstaller9169TheQuotaOfFilteredLists(t *testing.T) {
	f := newFixture(t, compute.Options{})
	var handles []driver.Handle
	for n := range 20 {
		handles = append(handles, f.accepted(launch(zoneA, fmt.Sprintf("m%d", n), 1)))
	}
	f.settle()
	f.cloud.ClearCalls()
	f.Expect(f.List(f.ctx, scope)).To(HaveLen(20))
	f.Expect(f.Observe(f.ctx, scope, handles)).To(HaveEach(HaveField("Err", BeNil())))
	f.Expect(f.count("instances.aggregatedList")).To(Equal(2))
	f.Expect(f.count("")).To(Equal(2))
	f.fault(simulator.Fault{Action: "instances.aggregatedList", Count: 2, Error: &simulator.APIError{Code: "rateLimitExceeded"}})
	_, err := f.List(f.ctx, scope)
	f.class(err, driver.ClassThrottle)
	f.Expect(driver.AsIncomplete(err)).To(BeNil())
	f.class(f.observe(handles[0]).Err, driver.ClassThrottle)
}

// TestEachDiskHasItsOwnKey (found in the code of Cluster API's provider: it encrypts additional disks with the key of the root disk, and
// ends without one).
func TestEachDiskHasItsOwnKey(t *testing.T) {
	const key = "projects/p/locations/l/keyRings/r/cryptoKeys/"
	f := newFixture(t, compute.Options{})
	f.running(launch(zoneA, "one", 1, func(s *infrav1.GCPMachineSpec) {
		s.Disks = []infrav1.Disk{
			{Type: "pd-ssd", SizeGiB: ptr.To[int32](10), KMSKeyName: key + "second"}, {Type: "pd-ssd", SizeGiB: ptr.To[int32](10)},
		}
	}))
	disks := f.cloud.Disks(project)
	f.Expect(disks).To(HaveLen(3))
	f.Expect(disks[0].DiskEncryptionKey).To(BeNil())
	f.Expect(disks[1].DiskEncryptionKey).To(HaveField("KMSKeyName", key+"second"))
	f.Expect(disks[2].DiskEncryptionKey).To(BeNil())
}

// TestCAPG289CapacityWithGPUs (CAPG #289, CAPA #3679: scaling from zero): those of the machine type and those that are asked for beside it.
func TestCAPG289CapacityWithGPUs(t *testing.T) {
	f := newFixture(t, compute.Options{})
	for name, c := range map[string]struct {
		machineType string
		beside      []infrav1.Accelerator
		gpus        int64
	}{
		"of the type": {machineType: "a2-highgpu-1g", gpus: 1},
		"beside it":   {machineType: "e2-standard-2", beside: []infrav1.Accelerator{{Type: "nvidia-tesla-t4", Count: 4}}, gpus: 4},
		"no GPUs":     {machineType: "e2-standard-2", beside: []infrav1.Accelerator{{Type: "ct5lp", Count: 4}}},
	} {
		template := &infrav1.GCPMachineTemplate{}
		template.Spec.Template.Spec = launch(zoneA, "one", 1).Object.Spec
		template.Spec.Template.Spec.MachineType, template.Spec.Template.Spec.Accelerators = c.machineType, c.beside
		size, err := f.Size(f.ctx, template)
		f.Expect(err).NotTo(HaveOccurred())
		gpus := size.Capacity["nvidia.com/gpu"]
		f.Expect(gpus.Value()).To(Equal(c.gpus), name)
	}
}

// TestKarpenterGCP169AnOperationThatFails (karpenter-gcp #169): there is no instance, and the operation says why.
func TestKarpenterGCP169AnOperationThatFails(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.fault(simulator.Fault{Action: "instances.insert", Count: 1, LaunchFailure: &simulator.Failure{Code: "ZONE_RESOURCE_POOL_EXHAUSTED"}})
	h := f.accepted(launch(zoneA, "one", 1))
	f.settle()
	f.Expect(f.observe(h).Value).
		To(And(HaveField("Refused", driver.ClassCapacity), HaveField("StateCode", "ZONE_RESOURCE_POOL_EXHAUSTED"), HaveField("ProviderID", "")))
	f.Expect(f.List(f.ctx, scope)).To(BeEmpty())
	f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0]).To(Equal(driver.Answer[[]string]{}), "nor is anything left of it")
}
