package main

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

// TestLife: the provider as its main runs it takes a machine to Running with one call, ends it with one, and leaves nothing.
func TestLife(t *testing.T) {
	f := newFixture(t)
	m := f.machine("m1")
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.Expect(m.Spec.ProviderID).To(Equal("azure:///subscriptions/" + arm.DefaultSubscription + "/resourceGroups/" + f.group +
		"/providers/Microsoft.Compute/virtualMachines/m1"))
	f.Expect(m.Status.FailureDomain).To(BeElementOf("1", "2"))
	f.Expect(m.Status.Addresses).To(HaveLen(2))
	f.Expect(f.resources()).To(ConsistOf("virtualMachines", "networkInterfaces", "disks"))
	f.deleted(m)
	f.Expect(f.calls("VirtualMachines_CreateOrUpdate")).To(Equal(map[int]int{http.StatusCreated: 1}))
	f.Expect(f.calls("VirtualMachines_Delete")).To(Equal(map[int]int{http.StatusAccepted: 1}))
}

// TestAnAddressOfTheUsersChoice takes an interface that is created before the machine: a call for the machine that is lost creates no
// second one, and a deletion in between leaves none.
func TestAnAddressOfTheUsersChoice(t *testing.T) {
	f := newFixture(t)
	static := func(s *infrav1.AzureMachineSpec) { s.PrivateIPAddress = "10.1.3.250" }
	f.fault(simulator.Fault{Action: "VirtualMachines_CreateOrUpdate", Count: 1, Cut: simulator.CutBefore})
	m := f.machine("m1", static)
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.Expect(m.Status.Addresses).To(ContainElement(HaveField("Address", "10.1.3.250")))
	f.Expect(f.calls("NetworkInterfaces_CreateOrUpdate")).To(Equal(map[int]int{http.StatusCreated: 1}))
	f.deleted(m)

	f.fault(
		simulator.Fault{Action: "VirtualMachines_CreateOrUpdate", Error: &simulator.APIError{Code: "Conflict", Status: http.StatusConflict}},
	)
	refused := f.machine("m2", static)
	f.Eventually(f.resources).Should(ConsistOf("networkInterfaces"))
	f.deleted(refused)
}

// TestCapacityThatShowsLate: the machine failed after it was accepted; it is ended, and the next attempt is another size.
func TestCapacityThatShowsLate(t *testing.T) {
	f := newFixture(t)
	f.fault(
		simulator.Fault{
			Action:        "VirtualMachines_CreateOrUpdate",
			Count:         1,
			LaunchFailure: &simulator.Failure{Code: "ZonalAllocationFailed", Message: "no room"},
		},
	)
	m := f.machine("m1", func(s *infrav1.AzureMachineSpec) {
		s.Zones, s.FallbackVMSizes = []string{"1"}, []string{"Standard_E2s_v5"}
	})
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.Expect(m.Status.InstanceType).To(Equal("Standard_E2s_v5"))
	f.Expect(f.resources()).To(ConsistOf("virtualMachines", "networkInterfaces", "disks"), "nothing of the first attempt")
	f.deleted(m)
}

// TestLostAnswers of launch and deletion make no second machine and leave nothing.
func TestLostAnswers(t *testing.T) {
	f := newFixture(t)
	for _, action := range []string{"VirtualMachines_CreateOrUpdate", "VirtualMachines_Delete"} {
		f.fault(simulator.Fault{Action: action, Count: 1, Cut: simulator.CutAfter})
	}
	m := f.machine("m1")
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.Expect(f.calls("VirtualMachines_CreateOrUpdate")[http.StatusCreated]).To(BeZero(), "the one that took effect got no answer")
	f.deleted(m)
}

// TestAResourceGroupThatIsGone: a machine of a group that was misspelt, and one whose group was deleted, can be deleted.
func TestAResourceGroupThatIsGone(t *testing.T) {
	f := newFixture(t)
	misspelt := f.machine("m1", func(s *infrav1.AzureMachineSpec) { s.ResourceGroup = "misspelt" })
	f.Eventually(f.Ready(misspelt)).Should(And(HavePrefix("False UnresolvedReference"), ContainSubstring("ResourceGroupNotFound")))
	m := f.machine("m2")
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	sim.RemoveGroup(arm.DefaultSubscription, f.group)
	f.deleted(misspelt)
	f.deleted(m)
}

// TestARefusal of what can never be right fails the machine, in Azure's words.
func TestARefusal(t *testing.T) {
	f := newFixture(t)
	m := f.machine("m1", func(s *infrav1.AzureMachineSpec) { s.VMSize = "Standard_Huge" })
	f.Eventually(f.Ready(m)).
		Should(And(HavePrefix("False InvalidConfiguration"), ContainSubstring("InvalidParameter: The value Standard_Huge")))
	f.deleted(m)
}

// CAPZ #1008: a machine that was deleted in Azure was created again. It is reported, and never launched again.
func TestCAPZ1008AMachineThatVanished(t *testing.T) {
	f := newFixture(t)
	m := f.machine("m1")
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.Expect(sim.Vanish(m.Spec.ProviderID[len("azure://"):])).To(Succeed())
	f.Eventually(f.Ready(m)).Should(HavePrefix("False InstanceVanished"))
	f.deleted(m)
	f.Expect(f.calls("VirtualMachines_CreateOrUpdate")).To(Equal(map[int]int{http.StatusCreated: 1}))
}

// TestAForeignName is left alone, and reported.
func TestAForeignName(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	theirs := other.machine("m1")
	other.Eventually(other.Ready(theirs)).Should(HavePrefix("True InstanceRunning"))
	mine := f.machine("m1", func(s *infrav1.AzureMachineSpec) { s.ResourceGroup = other.group })
	f.Eventually(f.Ready(mine)).Should(HavePrefix("False ForeignInstance"))
	f.Expect(c.Delete(f.Ctx, mine)).To(Succeed())
	f.Eventually(f.Ready(mine)).Should(ContainSubstring("not found"))
	other.Expect(other.resources()).To(HaveLen(3))
	other.deleted(theirs)
}

// TestCapacityOfATemplate is that of its size, for scaling from zero.
func TestCapacityOfATemplate(t *testing.T) {
	f := newFixture(t)
	template := &infrav1.AzureMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "t"}}
	template.Spec.Template.Spec = validSpec()
	f.Expect(c.Create(f.Ctx, template)).To(Succeed())
	f.Eventually(func() (string, error) {
		err := c.Get(f.Ctx, client.ObjectKeyFromObject(template), template)
		return template.Status.Capacity.Cpu().String() + " " + template.Status.Capacity.Memory().String(), err
	}).Should(Equal("2 7477Mi"))
	f.Expect(template.Status.NodeInfo).To(Equal(driverv1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}))
}
