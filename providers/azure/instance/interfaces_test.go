package instance_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/instance"
	"millwright.dev/providers/driver"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

func static(address string) func(*infrav1.AzureMachineSpec) {
	return func(s *infrav1.AzureMachineSpec) { s.PrivateIPAddress = address }
}

func internal(address string) clusterv1.MachineAddress {
	return clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address}
}

// TestSeveralInterfacesAndIPv6 take one call all the same.
func TestSeveralInterfacesAndIPv6(t *testing.T) {
	f := newFixture(t, arm.Options{})
	h := f.running(launch("m1", func(s *infrav1.AzureMachineSpec) {
		s.IPv6 = ptr(true)
		s.ExtraInterfaces = []infrav1.NetworkInterface{{SubnetID: arm.DefaultSubnet, IPForwarding: ptr(true)}}
	}))
	f.Expect(f.calls()["VirtualMachines_CreateOrUpdate"]).To(Equal(1))
	f.Expect(f.calls()["NetworkInterfaces_CreateOrUpdate"]).To(BeZero())
	f.Expect(f.kinds()["networkInterfaces"]).To(Equal(2))
	f.Expect(f.observe(h).Value.Addresses).To(Equal([]clusterv1.MachineAddress{
		internal("10.1.0.4"), internal("fd00:1::4"), internal("10.1.0.5"), {Type: clusterv1.MachineHostName, Address: "m1"},
	}), "those of the primary interface first")
	f.deleted(h)
	f.Expect(f.kinds()).To(BeEmpty())
}

// TestAnAddressOfTheUsersChoice takes the longer way: the interfaces are created before, with the mark, and go with the machine.
func TestAnAddressOfTheUsersChoice(t *testing.T) {
	f := newFixture(t, arm.Options{})
	h := f.running(launch("m1", static("10.1.0.77"), func(s *infrav1.AzureMachineSpec) {
		s.ExtraInterfaces = []infrav1.NetworkInterface{{SubnetID: arm.DefaultSubnet}}
		s.IPv6 = ptr(true)
	}))
	f.Expect(f.calls()["NetworkInterfaces_CreateOrUpdate"]).To(Equal(2))
	for _, r := range f.cloud.Resources() {
		f.Expect(r.Tags).To(HaveKeyWithValue(instance.TagOwnerUID, "uid-of-m1"), r.ID)
	}
	f.Expect(f.observe(h).Value.Addresses).To(Equal([]clusterv1.MachineAddress{
		internal("10.1.0.77"), internal("fd00:1::4"), internal("10.1.0.4"), {Type: clusterv1.MachineHostName, Address: "m1"},
	}))
	f.deleted(h)
	f.Expect(f.kinds()).To(BeEmpty())
}

// TestACrashBetweenInterfaceAndMachine leaves an interface, which the repeated launch takes, and which a deletion ends.
func TestACrashBetweenInterfaceAndMachine(t *testing.T) {
	for name, fault := range map[string]simulator.Fault{
		"before the interface":                  {Action: "NetworkInterfaces_CreateOrUpdate", Count: 1, Cut: simulator.CutBefore},
		"before the answer about the interface": {Action: "NetworkInterfaces_CreateOrUpdate", Count: 1, Cut: simulator.CutAfter},
		"before the machine":                    {Action: "VirtualMachines_CreateOrUpdate", Count: 1, Cut: simulator.CutBefore},
		"before the answer about the machine":   {Action: "VirtualMachines_CreateOrUpdate", Count: 1, Cut: simulator.CutAfter},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, arm.Options{})
			f.fault(fault)
			l := launch("m1", static("10.1.0.77"))
			_, err := f.Create(f.ctx, l)
			f.Expect(err).To(HaveOccurred())
			if _, err = f.Create(f.ctx, l); driver.IsConflict(err) {
				err = nil // The first call had created it.
			}
			f.Expect(err).NotTo(HaveOccurred())
			f.clock.Step(creation)
			f.Expect(f.kinds()).To(Equal(map[string]int{"virtualMachines": 1, "networkInterfaces": 1, "disks": 1}))
			f.deleted(handle(l))
			f.Expect(f.kinds()).To(BeEmpty())

			f.fault(fault)
			_, err = f.Create(f.ctx, l)
			f.Expect(err).To(HaveOccurred())
			if f.kinds()["virtualMachines"] > 0 {
				f.deleted(handle(l))
			}
			_, second := f.cleaned(handle(l))
			f.Expect(second).To(BeEmpty())
			f.Expect(f.kinds()).To(BeEmpty(), "nothing is left of a launch that is not repeated")
		})
	}
}

// TestAnInterfaceThatIsNotDone is waited for, not created again, and the machine is not asked for before.
func TestAnInterfaceThatIsNotDone(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.cloud.SetDelays(arm.Delays{Create: creation, Interface: 10 * time.Second})
	l := launch("m1", static("10.1.0.77"))
	for range 2 {
		_, err := f.Create(f.ctx, l)
		f.class(err, driver.ClassUnknown)
	}
	f.Expect(f.calls()["VirtualMachines_CreateOrUpdate"]).To(BeZero())
	f.clock.Step(10 * time.Second)
	f.running(l)
	f.Expect(f.calls()["NetworkInterfaces_CreateOrUpdate"]).To(Equal(1))
}

// TestAnAddressThatCannotBeHad: one that is taken may become free, one that is not of the subnet never fits.
func TestAnAddressThatCannotBeHad(t *testing.T) {
	f := newFixture(t, arm.Options{})
	first := f.running(launch("m1", static("10.1.0.77")))
	_, err := f.Create(f.ctx, launch("m2", static("10.1.0.77")))
	f.class(err, driver.ClassUnresolved)
	f.Expect(err).To(MatchError(ContainSubstring("already allocated")))
	_, err = f.Create(f.ctx, launch("m3", static("192.168.0.1")))
	f.class(err, driver.ClassTerminal)
	f.deleted(first)
	f.running(launch("m2", static("10.1.0.77")))
}

// TestAForeignInterface of the same name is left alone.
func TestAForeignInterface(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.fault(simulator.Fault{Action: "VirtualMachines_CreateOrUpdate", Count: 1, Cut: simulator.CutBefore})
	l := launch("m1", static("10.1.0.77"))
	_, err := f.Create(f.ctx, l)
	f.Expect(err).To(HaveOccurred())
	nic := f.cloud.Resources()[0]
	f.tag(nic.ID, `{"tags":{"team":"red"}}`)
	_, err = f.Create(f.ctx, l)
	f.class(err, driver.ClassRefused)
	f.Expect(err).To(MatchError(ContainSubstring("without the mark")))
	f.Expect(f.cloud.Resources()[0].Tags).To(Equal(map[string]string{"team": "red"}))
	_, second := f.cleaned(handle(l))
	f.Expect(second).To(BeEmpty())
	f.Expect(f.kinds()).To(Equal(map[string]int{"networkInterfaces": 1}))
}

// tag replaces the tags of an interface, as a user with rights in the subscription would.
func (f *fixture) tag(id, body string) {
	request := httptest.NewRequest(http.MethodPatch, id+"?api-version=2024-05-01", strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer somebody")
	answer := httptest.NewRecorder()
	f.cloud.ServeHTTP(answer, request)
	f.Expect(answer.Code).To(Equal(http.StatusOK))
}

// A hanging call for an interface ends with the caller's time.
func TestAnInterfaceThatHangs(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.fault(simulator.Fault{Action: "NetworkInterfaces_CreateOrUpdate", Count: 1, HoldBefore: true})
	f.unknown(func(ctx context.Context) error {
		_, err := f.Create(ctx, launch("m1", static("10.1.0.77")))
		return err
	})
	f.Expect(f.calls()["VirtualMachines_CreateOrUpdate"]).To(BeZero())
}

// TestALostAnswerAboutAnInterface is of unknown outcome: the interface holds an address, and may come to be after the object would be gone.
// That of a read has no effect.
func TestALostAnswerAboutAnInterface(t *testing.T) {
	for action, want := range map[string]driver.Class{
		"NetworkInterfaces_CreateOrUpdate": driver.ClassUnknown, "NetworkInterfaces_Get": driver.ClassRefused,
	} {
		f := newFixture(t, arm.Options{})
		f.fault(simulator.Fault{Action: action, Count: 1, Cut: simulator.CutAfter})
		_, err := f.Create(f.ctx, launch("m1", static("10.1.0.77")))
		f.class(err, want)
	}
}

// TestAnInterfaceThatHasFailed is put again if it is ours and nothing uses it, and else left alone.
func TestAnInterfaceThatHasFailed(t *testing.T) {
	f := newFixture(t, arm.Options{})
	put := "NetworkInterfaces_CreateOrUpdate"
	f.fault(simulator.Fault{Action: put, Count: 2, LaunchFailure: &simulator.Failure{Code: "InternalServerError"}})
	l := launch("m1", static("10.1.0.77"))
	for range 2 {
		_, err := f.Create(f.ctx, l)
		f.class(err, driver.ClassRefused)
		f.Expect(err).To(MatchError(ContainSubstring("in the state Failed")))
	}
	h := f.running(l)
	f.Expect(f.calls()[put]).To(Equal(3))
	f.Expect(f.kinds()["networkInterfaces"]).To(Equal(1))

	f.deleted(h)
	f.fault(simulator.Fault{Action: put, Count: 1, LaunchFailure: &simulator.Failure{Code: "InternalServerError"}})
	_, err := f.Create(f.ctx, l)
	f.class(err, driver.ClassRefused)
	f.tag(f.cloud.Resources()[0].ID, `{"tags":{"team":"red"}}`)
	_, err = f.Create(f.ctx, l)
	f.Expect(err).To(MatchError(ContainSubstring("without the mark")))
	f.Expect(f.calls()[put]).To(Equal(4), "a foreign one is not changed")
}

// TestALockThatIsTakenOff: launches wait for it, with and without interfaces of their own, and fail for nothing else.
func TestALockThatIsTakenOff(t *testing.T) {
	f := newFixture(t, arm.Options{})
	lock := func(kind string) {
		f.cloud.ChangeCatalog(func(c *arm.Catalog) { c.Groups[0].Lock = kind })
	}
	lock("ReadOnly")
	launches := []driver.Launch[*infrav1.AzureMachine]{launch("m1"), launch("m2", static("10.1.0.77"))}
	for _, l := range launches {
		_, err := f.Create(f.ctx, l)
		f.class(err, driver.ClassUnresolved)
		f.Expect(err).To(MatchError(ContainSubstring("remove the lock")))
	}
	lock("")
	for _, l := range launches {
		h := f.running(l)
		lock("CanNotDelete")
		f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], driver.ClassTerminal)
		lock("")
	}
}

// TestWhatALaunchNamesIsNotThere, in the words that Azure also has for a machine that is not: nothing was created that could have vanished.
func TestWhatALaunchNamesIsNotThere(t *testing.T) {
	for _, action := range []string{"NetworkInterfaces_CreateOrUpdate", "VirtualMachines_CreateOrUpdate"} {
		f := newFixture(t, arm.Options{})
		f.fault(simulator.Fault{Action: action, Count: 1, Error: &simulator.APIError{Code: "ResourceNotFound", Status: http.StatusNotFound}})
		l := launch("m1", static("10.1.0.77"))
		_, err := f.Create(f.ctx, l)
		f.class(err, driver.ClassUnresolved)
		f.running(l)
	}
}
