package main

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/simulator"
)

// TestDelete_OperationFailsAfterAcceptance_IsReported: Ready has Azure's words, the state is not Terminating, the DELETEs become rarer, and
// the machine goes once Azure deletes it.
func TestDelete_OperationFailsAfterAcceptance_IsReported(t *testing.T) {
	f := newFixture(t)
	m := f.machine("m1")
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	fault := f.fault(simulator.Fault{Action: "VirtualMachines_Delete", LaunchFailure: &simulator.Failure{
		Code: "OperationNotAllowed", Message: "Cannot delete VM m1: a backup is under way.",
	}})
	began := time.Now()
	f.Expect(c.Delete(f.Ctx, m)).To(Succeed())
	f.Eventually(f.Ready(m)).Should(And(HavePrefix("False CloudError"), ContainSubstring("OperationNotAllowed"),
		ContainSubstring("Cannot delete VM m1: a backup is under way")))
	f.Eventually(func() (driverv1.InstanceState, error) {
		err := c.Get(f.Ctx, client.ObjectKeyFromObject(m), m)
		return m.Status.InstanceState, err
	}).Should(Equal(driverv1.InstanceRunning))
	f.Eventually(func() int { return f.calls("VirtualMachines_Delete")[http.StatusAccepted] }).Should(BeNumerically(">=", 3))
	// One second after the first failure, two after the second: the waits of the kit's class Refused.
	f.Expect(time.Since(began)).To(BeNumerically(">", 3*time.Second))
	sim.RemoveFault(fault)
	f.Eventually(f.Ready(m)).Should(ContainSubstring("not found"))
	f.Expect(f.resources()).To(BeEmpty())
}

// TestAdopt_MachineMadeByHand_InterfaceAndDiskEndWithIt: ForeignInstance names the tags, with them the deletion leaves nothing behind.
func TestAdopt_MachineMadeByHand_InterfaceAndDiskEndWithIt(t *testing.T) {
	f := newFixture(t)
	first := f.machine("m1")
	f.Eventually(f.Ready(first)).Should(HavePrefix("True InstanceRunning"))
	id := first.Spec.ProviderID[len("azure://"):]
	f.Expect(sim.SetTags(id, nil)).To(Succeed())
	f.Expect(sim.MakeByHand(id, true, true)).To(Succeed())
	adopter := f.machine("m2", func(s *infrav1.AzureMachineSpec) { s.ProviderID = first.Spec.ProviderID })
	f.Eventually(f.Ready(adopter)).Should(And(HavePrefix("False ForeignInstance"), ContainSubstring("OS disk are then deleted with it")))
	f.Expect(sim.SetTags(id, map[string]string{
		"infrastructure.millwright.dev_owner-uid": string(adopter.UID),
		"infrastructure.millwright.dev_machine":   f.Namespace + "/m2",
	})).To(Succeed())
	f.Eventually(f.Ready(adopter)).Should(HavePrefix("True InstanceRunning"))
	f.Delete(adopter)
	for _, r := range sim.Resources() {
		f.Expect(r.ID).NotTo(ContainSubstring("/" + f.group + "/"))
	}
}
