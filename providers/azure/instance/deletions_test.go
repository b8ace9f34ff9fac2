package instance_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

const cannotDelete = "Cannot delete VM m1: a nested resource is in use."

// TestDelete_CAPZ2792ForceDeletionRefused_DeletesWithoutIt at once and after the acceptance: such a machine could never be deleted.
func TestDelete_CAPZ2792ForceDeletionRefused_DeletesWithoutIt(t *testing.T) {
	const code = "OperationNotAllowed"
	message := "Operation 'ForceDelete' is not allowed on resource 'm1' since it manages updates using maintenance control."
	for _, fault := range []simulator.Fault{
		{Error: &simulator.APIError{Code: code, Message: message}}, {LaunchFailure: &simulator.Failure{Code: code, Message: message}},
	} {
		f := newFixture(t, arm.Options{})
		h := f.running(launch("m1"))
		fault.Action, fault.Parameters = "VirtualMachines_Delete", map[string]string{"forceDeletion": "true"}
		f.fault(fault)
		f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
		f.clock.Step(deletion)
		if f.observe(h).Err == nil {
			f.deleted(h)
		}
		f.class(f.observe(h).Err, driver.ClassNotFound)
		f.Expect(f.calls()).To(HaveKeyWithValue("VirtualMachines_Delete", 2))
	}
}

// TestDelete_OperationFailsAfterAcceptance_ReturnsAzuresWords for each class of a late failure. One DELETE is sent until the operation has
// ended, and one poll is made for each call.
func TestDelete_OperationFailsAfterAcceptance_ReturnsAzuresWords(t *testing.T) {
	for code, class := range map[string]driver.Class{
		"OperationNotAllowed": driver.ClassRefused, "ScopeLocked": driver.ClassTerminal, "AuthorizationFailed": driver.ClassAuth,
		"InternalExecutionError": driver.ClassRefused, "TooManyRequests": driver.ClassThrottle,
	} {
		f := newFixture(t, arm.Options{})
		h := f.running(launch("m1"))
		f.fault(simulator.Fault{
			Action: "VirtualMachines_Delete", Count: 1, LaunchFailure: &simulator.Failure{Code: code, Message: cannotDelete},
		})
		ask := func() error { return f.Delete(f.ctx, scope, []driver.Handle{h})[0] }
		f.Expect(ask()).To(Succeed())
		f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstanceTerminating))
		for range 3 {
			f.Expect(ask()).To(Succeed(), "the operation continues")
		}
		f.clock.Step(deletion)
		f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstanceRunning), "the machine has its power again")
		err := ask()
		f.class(err, class)
		f.Expect(err).To(MatchError(And(ContainSubstring(code+": "), ContainSubstring("accepted the deletion"), ContainSubstring(cannotDelete))))
		f.Expect(f.calls()).To(And(HaveKeyWithValue("VirtualMachines_Delete", 1), HaveKeyWithValue("Operations_Get", 4)))
		f.deleted(h)
		f.Expect(f.calls()).To(HaveKeyWithValue("VirtualMachines_Delete", 2))
	}
}

// TestDelete_OperationNamesAnotherHost_AsksAzureResourceManager: no other address gets the token, and one behind a proxy is found.
func TestDelete_OperationNamesAnotherHost_AsksAzureResourceManager(t *testing.T) {
	f := newFixture(t, arm.Options{OperationHost: "westeurope.management.example.com"})
	h := f.running(launch("m1"))
	for range 2 {
		f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	}
	f.Expect(f.calls()).To(And(HaveKeyWithValue("VirtualMachines_Delete", 1), HaveKeyWithValue("Operations_Get", 1)))
}

// TestDelete_OperationNeverEnds_IsSentAgain after an hour, also if nothing can be read all the time.
func TestDelete_OperationNeverEnds_IsSentAgain(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.cloud.SetDelays(arm.Delays{Create: creation, Delete: 24 * time.Hour})
	h := f.running(launch("m1"))
	for range 3 {
		f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	}
	f.Expect(f.calls()).To(HaveKeyWithValue("VirtualMachines_Delete", 1))
	f.clock.Step(61 * time.Minute)
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.Expect(f.calls()).To(HaveKeyWithValue("VirtualMachines_Delete", 2))
}

// TestDelete_OperationCannotBeRead_IsSentAgain: a role of an earlier version, an operation that Azure has forgotten, and a new process.
func TestDelete_OperationCannotBeRead_IsSentAgain(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound} {
		f := newFixture(t, arm.Options{})
		h := f.running(launch("m1"))
		f.fault(simulator.Fault{Action: "Operations_Get", Error: &simulator.APIError{Code: "AuthorizationFailed", Status: status}})
		for range 2 {
			f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
		}
		f.Expect(f.calls()).To(HaveKeyWithValue("VirtualMachines_Delete", 2))
		f.clock.Step(deletion)
		f.class(f.observe(h).Err, driver.ClassNotFound)
	}
}

// TestCleanup_DeletionOfPartFailsAfterAcceptance_ReturnsAzuresWords for a disk and an interface that a machine has left.
func TestCleanup_DeletionOfPartFailsAfterAcceptance_ReturnsAzuresWords(t *testing.T) {
	for action, changes := range map[string]map[string]string{
		"Disks_Delete": {"osDisk": "Detach"}, "NetworkInterfaces_Delete": {"nic": "Detach"},
	} {
		f := newFixture(t, arm.Options{})
		f.cloud.SetDelays(arm.Delays{Create: creation, Delete: deletion, Part: 10 * time.Second})
		h := f.handMade("m1", changes["osDisk"] != "", changes["nic"] != "")
		f.adopted(h)
		f.fault(simulator.Fault{Action: action, Count: 1, LaunchFailure: &simulator.Failure{Code: "OperationNotAllowed", Message: "in a backup"}})
		clean := func() driver.Answer[[]string] { return f.Cleanup(f.ctx, scope, []driver.Handle{h})[0] }
		f.Expect(clean()).To(And(HaveField("Err", BeNil()), HaveField("Value", HaveLen(1))))
		f.Expect(clean().Err).To(Succeed())
		f.clock.Step(10 * time.Second)
		f.Expect(clean().Err).To(MatchError(ContainSubstring("OperationNotAllowed: Azure accepted the deletion, and it failed: in a backup")))
		f.Expect(clean().Err).To(Succeed())
		f.clock.Step(10 * time.Second)
		f.Expect(clean()).To(And(HaveField("Err", BeNil()), HaveField("Value", BeEmpty())))
		f.Expect(f.calls()).To(HaveKeyWithValue(action, 2))
	}
}

// handMade makes a machine as a person does, whose OS disk and interface stay at its deletion if they are detached, and marks the machine.
func (f *fixture) handMade(name string, diskStays, nicStays bool) driver.Handle {
	l := launch(name, func(s *infrav1.AzureMachineSpec) { s.PublicIP = ptr(true) })
	h := f.running(l)
	f.Expect(f.cloud.MakeByHand(h.ProviderID[len("azure://"):], diskStays, nicStays)).To(Succeed())
	return h
}

// adopted deletes a machine as the kit does: a look, and the deletion.
func (f *fixture) adopted(h driver.Handle) {
	look := h
	look.Ending = true
	f.Expect(f.observe(look).Err).NotTo(HaveOccurred())
	f.deleted(h)
}

// TestDelete_MachineMadeByHand_DeletesInterfaceAndOSDisk whatever deleteOption they have; what another object has marked stays.
func TestDelete_MachineMadeByHand_DeletesInterfaceAndOSDisk(t *testing.T) {
	for _, stays := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
		f := newFixture(t, arm.Options{})
		h := f.handMade("m1", stays[0], stays[1])
		f.adopted(h)
		f.cleaned(h)
		f.clock.Step(time.Minute)
		first, _ := f.cleaned(h)
		f.Expect(first).To(BeEmpty())
		f.Expect(f.kinds()).To(Or(BeEmpty(), Equal(map[string]int{"publicIPAddresses": 1})), "%v", stays)
	}
	f := newFixture(t, arm.Options{})
	h := f.handMade("m1", true, true)
	for _, r := range f.cloud.Resources() {
		if r.Kind == "disks" {
			f.Expect(f.cloud.SetTags(r.ID, map[string]string{
				"infrastructure.millwright.dev_owner-uid": "other", "infrastructure.millwright.dev_machine": "default/other",
			})).To(Succeed())
		}
	}
	f.adopted(h)
	f.cleaned(h)
	f.clock.Step(time.Minute)
	f.Expect(f.kinds()).To(HaveKeyWithValue("disks", 1), "it is another object's")
}

// TestDelete_MachineOfTheProvider_MakesNoFurtherCall: its parts have the deleteOption Delete.
func TestDelete_MachineOfTheProvider_MakesNoFurtherCall(t *testing.T) {
	f := newFixture(t, arm.Options{})
	h := f.running(launch("m1"))
	f.adopted(h)
	f.Expect(f.calls()).NotTo(Or(HaveKey("Disks_Get"), HaveKey("NetworkInterfaces_Get"), HaveKey("NetworkInterfaces_UpdateTags")))
}
