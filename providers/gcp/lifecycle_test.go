package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/test/clouds/simulator"
)

const running = "True InstanceRunning"

// TestLife: the provider as its main runs it takes a machine to Running, and leaves nothing once the object is deleted.
func TestLife(t *testing.T) {
	f := newFixture(t)
	m := f.machine("m1", func(s *infrav1.GCPMachineSpec) { s.PublicIP, s.DeletionProtection = ptr.To(true), ptr.To(true) })
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	f.Expect(m.Spec.ProviderID).To(MatchRegexp("^gce://" + f.project + "/us-central1-[ab]/m1$"))
	f.Expect(m.Status.FailureDomain).To(BeElementOf("us-central1-a", "us-central1-b"))
	f.Expect(m.Status.InstanceType).To(Equal("e2-standard-2"))
	f.Expect(m.Status.Addresses).To(ConsistOf(HaveField("Type", clusterv1.MachineInternalIP), HaveField("Type", clusterv1.MachineExternalIP)))
	f.deleted(m)
	f.Expect(f.calls()).To(And(HaveKeyWithValue("instances.insert", 1), HaveKeyWithValue("instances.delete", 1),
		HaveKeyWithValue("instances.setDeletionProtection", 1)))
}

// TestKarpenterGCP169CapacityThatShowsLate (karpenter-gcp #169: the insertion succeeds, its operation does not): the next attempt goes to
// another zone.
func TestKarpenterGCP169CapacityThatShowsLate(t *testing.T) {
	f := newFixture(t)
	f.fault(simulator.Fault{Action: "instances.insert", Parameters: map[string]string{"zone": "us-central1-a"},
		LaunchFailure: &simulator.Failure{Code: "ZONE_RESOURCE_POOL_EXHAUSTED"}})
	for _, name := range []string{"m1", "m2"} {
		m := f.machine(name)
		f.Eventually(f.Ready(m)).Should(HavePrefix(running))
		f.Expect(m.Status.FailureDomain).To(Equal("us-central1-b"))
		f.deleted(m)
	}
	f.Expect(f.calls()["instances.insert"]).To(BeNumerically("<=", 3), "the zone is remembered")
}

// TestFallbackTypes are tried where no zone has capacity for the first.
func TestFallbackTypes(t *testing.T) {
	f := newFixture(t)
	f.fault(simulator.Fault{Action: "instances.insert", Parameters: map[string]string{"machineType": "n2-standard-4"},
		LaunchFailure: &simulator.Failure{Code: "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"}})
	m := f.machine("m1", func(s *infrav1.GCPMachineSpec) {
		s.MachineType, s.FallbackMachineTypes = "n2-standard-4", []string{"e2-standard-4"}
	})
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	f.Expect(m.Status.InstanceType).To(Equal("e2-standard-4"))
	f.deleted(m)
}

// TestLostAnswers of a launch and of the deletion make no second instance and leave nothing.
func TestLostAnswers(t *testing.T) {
	f := newFixture(t)
	for _, call := range []string{"instances.insert", "instances.delete"} {
		f.fault(simulator.Fault{Action: call, Count: 1, Cut: simulator.CutAfter})
	}
	m := f.machine("m1")
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	f.deleted(m)
}

// TestDeletedInMidCreation: an object that goes while its launch is under way leaves nothing, whatever Compute Engine makes of the launch.
func TestDeletedInMidCreation(t *testing.T) {
	f := newFixture(t)
	for name, failure := range map[string]*simulator.Failure{"succeeds": nil, "fails": {Code: "ZONE_RESOURCE_POOL_EXHAUSTED"}} {
		if failure != nil {
			f.fault(simulator.Fault{Action: "instances.insert", Parameters: map[string]string{"name": name}, LaunchFailure: failure})
		}
		before := f.calls()["instances.insert"]
		m := f.machine(name)
		f.Eventually(func() int { return f.calls()["instances.insert"] }).Should(BeNumerically(">", before))
		f.deleted(m)
	}
}

// TestCAPG173VanishedAndPreempted (CAPG #173: such instances were created again with outdated bootstrap data): they are reported, and never
// created again.
func TestCAPG173VanishedAndPreempted(t *testing.T) {
	f := newFixture(t)
	spot := func(action infrav1.InstanceTerminationAction) func(*infrav1.GCPMachineSpec) {
		return func(s *infrav1.GCPMachineSpec) {
			s.ProvisioningModel, s.InstanceTerminationAction = infrav1.ProvisioningModelSpot, action
		}
	}
	vanishes, stops, goes := f.machine("vanishes"), f.machine("stops", spot("STOP")), f.machine("goes", spot("DELETE"))
	for _, m := range []*infrav1.GCPMachine{vanishes, stops, goes} {
		f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	}
	f.Expect(sim.Vanish(f.project, vanishes.Status.FailureDomain, "vanishes")).To(Succeed())
	f.Expect(sim.Preempt(f.project, stops.Status.FailureDomain, "stops")).To(Succeed())
	f.Expect(sim.Preempt(f.project, goes.Status.FailureDomain, "goes")).To(Succeed())
	f.Eventually(f.Ready(vanishes)).Should(HavePrefix("False InstanceVanished"))
	f.Eventually(f.Ready(stops)).Should(HavePrefix("False InstanceInterrupted"))
	f.Eventually(f.Ready(goes)).Should(And(HavePrefix("False InstanceInterrupted"), ContainSubstring("Instance was preempted.")))
	f.Expect(stops.Status.InstanceState).To(Equal(driverv1.InstanceStopped))
	for _, m := range []*infrav1.GCPMachine{vanishes, stops, goes} {
		f.Expect(m.Status.FailureReason).NotTo(BeNil())
		f.Expect(c.Delete(f.Ctx, m)).To(Succeed())
	}
	f.Eventually(func() int { return len(sim.Instances(f.project)) + len(sim.Disks(f.project)) }).Should(BeZero())
	f.Expect(f.calls()["instances.insert"]).To(Equal(3))
}

// TestAZoneThatDoesNotAnswer holds up neither the machines of other zones nor their deletion, and nothing is concluded about its own.
func TestAZoneThatDoesNotAnswer(t *testing.T) {
	f := newFixture(t)
	zone := func(zone string) func(*infrav1.GCPMachineSpec) {
		return func(s *infrav1.GCPMachineSpec) { s.Zones = []string{zone} }
	}
	silent, goes := f.machine("silent", zone("us-central1-c")), f.machine("goes", zone("us-central1-a"))
	f.Eventually(f.Ready(silent)).Should(HavePrefix(running))
	f.Eventually(f.Ready(goes)).Should(HavePrefix(running))
	sim.SetUnreachable("us-central1-c") // No other test has machines there.
	defer sim.SetUnreachable()
	comes := f.machine("comes", zone("us-central1-b"))
	f.Eventually(f.Ready(comes)).Should(HavePrefix(running))
	f.Expect(c.Delete(f.Ctx, goes)).To(Succeed())
	f.Eventually(f.Ready(goes)).Should(ContainSubstring("not found"))
	f.Expect(sim.Vanish(f.project, "us-central1-b", "comes")).To(Succeed())
	f.Eventually(f.Ready(comes)).Should(HavePrefix("False InstanceVanished"))
	f.Expect(sim.Vanish(f.project, "us-central1-c", "silent")).To(Succeed())
	lists := f.calls()["instances.aggregatedList"]
	f.Eventually(func() int { return f.calls()["instances.aggregatedList"] }).Should(BeNumerically(">", lists+1))
	f.Expect(f.Ready(silent)()).To(HavePrefix(running))
	sim.SetUnreachable()
	f.Eventually(f.Ready(silent)).Should(HavePrefix("False InstanceVanished"))
}

// TestRefusals that can never be right fail the machine, in the cloud's words; what may come to be is waited for.
func TestRefusals(t *testing.T) {
	f := newFixture(t)
	f.fault(
		simulator.Fault{
			Action:     "instances.insert",
			Parameters: map[string]string{"name": "wrong"},
			Error:      &simulator.APIError{Code: "invalid", Message: "Invalid value"},
		},
	)
	wrong := f.machine("wrong")
	waits := f.machine("waits", func(s *infrav1.GCPMachineSpec) { s.Image.Family = "none" })
	f.Eventually(f.Ready(wrong)).
		Should(And(HavePrefix("False InvalidConfiguration"), ContainSubstring("instances.insert: invalid: Invalid value")))
	f.Eventually(f.Ready(waits)).Should(And(HavePrefix("False UnresolvedReference"), ContainSubstring("images/family/none' was not found")))
	f.deleted(wrong)
	f.deleted(waits)
}

// TestTheNameIsForeign: an instance that is not ours is neither used nor deleted.
func TestTheNameIsForeign(t *testing.T) {
	f := newFixture(t)
	m := f.machine("m1", func(s *infrav1.GCPMachineSpec) { s.Zones = []string{"us-central1-a"} })
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	theirs := f.machine("m1-copy", func(s *infrav1.GCPMachineSpec) { s.ProviderID = m.Spec.ProviderID })
	f.Eventually(f.Ready(theirs)).Should(HavePrefix("False ForeignInstance"))
	f.Expect(c.Delete(f.Ctx, theirs)).To(Succeed())
	f.Eventually(f.Ready(theirs)).Should(HavePrefix("False DeletionBlocked"))
	f.Expect(sim.Instances(f.project)).To(HaveLen(1))
	theirs.Finalizers = nil
	f.Expect(c.Update(f.Ctx, theirs)).To(Succeed())
	f.deleted(m)
}

// TestCapacityOfATemplate is that of its machine type.
func TestCapacityOfATemplate(t *testing.T) {
	f := newFixture(t)
	template := &infrav1.GCPMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "t", Labels: f.labels()}}
	template.Spec.Template.Spec = f.spec()
	f.Expect(c.Create(f.Ctx, template)).To(Succeed())
	f.Eventually(func() bool {
		f.Expect(c.Get(f.Ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
		return meta.IsStatusConditionTrue(template.Status.Conditions, driverv1.CapacityKnownCondition)
	}).Should(BeTrue())
	f.Expect(template.Status.Capacity.Cpu().Value()).To(BeEquivalentTo(2))
}
