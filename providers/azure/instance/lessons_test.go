package instance_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

// The issues of other projects that docs/lessons.md has, each with a test of its name.

// CAPZ #6441, MCM #298, #73, #544: interfaces of machines that could not be created, for a quota or for lack of capacity, were left.
func TestCAPZ6441InterfacesOfFailedLaunches(t *testing.T) {
	t.Run("refused at once", func(t *testing.T) {
		f := newFixture(t, arm.Options{RefusedLaunchesLeaveInterfaces: true})
		f.cloud.Exhaust("Standard_D2s_v5", "1", arm.Exhaustion{Code: "AllocationFailed", Message: "no room"})
		l := launch("m1")
		_, err := f.Create(f.ctx, l)
		f.class(err, driver.ClassCapacity)
		f.Expect(f.kinds()["networkInterfaces"]).To(Equal(1))
		_, second := f.cleaned(handle(l))
		f.Expect(second).To(BeEmpty())
		f.Expect(f.kinds()).To(BeEmpty())
	})
	t.Run("a quota", func(t *testing.T) {
		catalog := arm.DefaultCatalog()
		catalog.Quotas = map[string]int{"standardDSv5Family": 1}
		f := newFixture(t, arm.Options{Catalog: catalog})
		l := launch("m1", static("10.1.0.9"))
		_, err := f.Create(f.ctx, l)
		f.class(err, driver.ClassQuota)
		f.Expect(f.kinds()["networkInterfaces"]).To(Equal(1), "it was made before")
		_, second := f.cleaned(handle(l))
		f.Expect(second).To(BeEmpty())
		f.Expect(f.kinds()).To(BeEmpty())
	})
}

// karpenter-azure #67, #92: an interface is reserved for 180 seconds for the machine whose launch was refused.
func TestKarpenterAzure67ReservedInterfaces(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.cloud.Exhaust("Standard_D2s_v5", "1", arm.Exhaustion{Code: "ZonalAllocationFailed", Message: "no room"})
	l := launch("m1", static("10.1.0.9"))
	_, err := f.Create(f.ctx, l)
	f.class(err, driver.ClassCapacity)
	answer := f.Cleanup(f.ctx, scope, []driver.Handle{handle(l)})[0]
	f.class(answer.Err, driver.ClassRefused)
	f.Expect(answer.Value).To(HaveLen(1), "it is still there, and looked at again")
	f.clock.Step(180 * time.Second)
	_, second := f.cleaned(handle(l))
	f.Expect(second).To(BeEmpty())
	f.cloud.Exhaust("Standard_D2s_v5", "1", arm.Exhaustion{})
	f.running(l)
}

// CAPZ #201: the OS disk that a machine had left kept another of its name from being created.
func TestCAPZ201DisksThatAreLeft(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.running(launch("m1"))
	disks := f.kinds()["disks"]
	f.deleted(handle(launch("m1")))
	f.running(launch("m1"))
	f.Expect(f.kinds()["disks"]).To(Equal(disks))
	for _, r := range f.cloud.Resources() {
		if r.Kind == "disks" {
			f.Expect(r.Name).NotTo(Equal("m1"), "Azure gives disks names that none had")
		}
	}
}

// CAPZ #2571: a deletion failed as long as the operation of the creation had failed.
func TestCAPZ2571DeletionAfterAFailedCreation(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.fault(simulator.Fault{
		Action: "VirtualMachines_CreateOrUpdate", Count: 1, LaunchFailure: &simulator.Failure{Code: "OSProvisioningClientError", Message: "no"},
	})
	h := f.running(launch("m1"))
	f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstanceFailed))
	f.deleted(h)
	during := f.accepted(launch("m2"))
	f.deleted(during)
	f.Expect(f.kinds()).To(BeEmpty())
	f.Expect(f.calls()["Operations_Get"]).To(BeZero(), "no operation is asked about")
}

// karpenter-azure PR #1472: an SDK that repeats calls by itself gives up in 6 seconds, where Azure asks for 17 to 29.
func TestKarpenterAzure1472ThrottledFor29Seconds(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.fault(simulator.Fault{Action: "*", Error: &simulator.APIError{
		Status: http.StatusTooManyRequests, Code: "OperationNotAllowed", Message: "Too many requests.", RetryAfter: 29 * time.Second,
	}})
	_, err := f.Create(f.ctx, launch("m1"))
	f.class(err, driver.ClassThrottle)
	var e *driver.Error
	f.Expect(errors.As(err, &e)).To(BeTrue())
	f.Expect(e.RetryAfter).To(Equal(29 * time.Second))
	f.Expect(f.cloud.Calls()).To(HaveLen(1), "the kit waits, not the driver")
}

// karpenter-azure PR #1934: machines that were taken back counted as running.
func TestKarpenterAzure1934EvictedMachines(t *testing.T) {
	f := newFixture(t, arm.Options{})
	h := f.running(launch("m1", func(s *infrav1.AzureMachineSpec) { s.Spot = &infrav1.Spot{EvictionPolicy: "Deallocate"} }))
	f.Expect(f.cloud.Evict(h.ProviderID[len("azure://"):])).To(Succeed())
	f.clock.Step(10 * time.Second)
	f.Expect(f.observe(h).Value).To(And(HaveField("State", driverv1.InstanceStopped), HaveField("Interrupted", true)))
	status, err := f.ListStatus(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(status).To(HaveKeyWithValue(h.ProviderID, And(HaveField("State", driverv1.InstanceStopped), HaveField("Interrupted", true))))
}

// CAPZ #4771: templates did not have GPUs, so that nothing was scaled from zero for them.
func TestCAPZ4771CapacityWithGPUs(t *testing.T) {
	f := newFixture(t, arm.Options{})
	template := &infrav1.AzureMachineTemplate{}
	template.Spec.Template.Spec = spec(func(s *infrav1.AzureMachineSpec) { s.VMSize = "Standard_NC4as_T4_v3" })
	size, err := f.Size(f.ctx, template)
	f.Expect(err).NotTo(HaveOccurred())
	gpus := size.Capacity["nvidia.com/gpu"]
	f.Expect(gpus.String()).To(Equal("1"))
	f.Expect(size.Capacity.Cpu().String()).To(Equal("4"))
}

// TestObserve_ListLags_FindsTheMachineByName: what a list of Azure lacks for a while is no machine that has vanished.
func TestObserve_ListLags_FindsTheMachineByName(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.cloud.SetDelays(arm.Delays{Create: creation, List: time.Minute})
	h := f.running(launch("m1"))
	f.Expect(f.list()).To(BeEmpty())
	f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstanceRunning))
	many := []driver.Handle{h, h, h, h}
	for i := range many {
		many[i].Ending = i%2 == 0
	}
	for _, answer := range f.Observe(f.ctx, scope, many) {
		f.Expect(answer.Err).NotTo(HaveOccurred())
	}
	f.clock.Step(time.Minute)
	f.Expect(f.list()).To(HaveLen(1))
}
