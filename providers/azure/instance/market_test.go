package instance_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/shortage"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

const groupID = "/subscriptions/" + arm.DefaultSubscription + "/resourceGroups/Nodes/providers/Microsoft.Compute/"

// candidate is the first place of a spec.
func (f *fixture) candidate(changes ...func(*infrav1.AzureMachineSpec)) driver.Candidate {
	found, err := f.Places(f.ctx, launch("m1", changes...))
	f.Expect(err).NotTo(HaveOccurred())
	return found[0]
}

func reserved(name string) func(*infrav1.AzureMachineSpec) {
	return func(s *infrav1.AzureMachineSpec) {
		s.CapacityReservationGroupID = groupID + "capacityReservationGroups/" + name
	}
}

func hosted(s *infrav1.AzureMachineSpec) {
	s.Placement = &infrav1.Placement{HostGroupID: groupID + "hostGroups/hosts"}
}

// TestAFullReservationIsAShortageOfItAlone, and so is a host group without room: of what was refused at once and of what has failed late,
// also as a list shows it.
func TestAFullReservationIsAShortageOfItAlone(t *testing.T) {
	catalog := arm.DefaultCatalog()
	catalog.Others = append(catalog.Others, groupID+"capacityReservationGroups/full", groupID+"hostGroups/hosts")
	for name, in := range map[string]func(*infrav1.AzureMachineSpec){"reservation": reserved("full"), "hosts": hosted} {
		for _, late := range []bool{false, true} {
			f := newFixture(t, arm.Options{Catalog: catalog})
			memory := shortage.New(clocktesting.NewFakePassiveClock(f.clock.Now().Add(time.Minute)), 0)
			short := func(changes ...func(*infrav1.AzureMachineSpec)) bool {
				return !memory.Mark("subscription", []driver.Candidate{f.candidate(changes...)})[0].ShortSince.IsZero()
			}
			f.cloud.Exhaust("Standard_D2s_v5", "1", arm.Exhaustion{Code: "OverconstrainedZonalAllocationRequest", Late: late})
			_, err := f.Create(f.ctx, launch("m1", in))
			f.Expect(err == nil).To(Equal(late))
			f.clock.Step(creation)
			memory.Report("subscription", f.candidate(in), err)
			memory.SawInstances("subscription", f.list())
			f.Expect(short(in)).To(BeTrue(), name)
			f.Expect(short()).To(BeFalse(), name)
			f.Expect(short(reserved("other"))).To(BeFalse(), name)
		}
	}
}

// TestAFullSubnetIsAShortageOfItAlone: it is full in all zones and for all sizes, and another one is not.
func TestAFullSubnetIsAShortageOfItAlone(t *testing.T) {
	other := func(s *infrav1.AzureMachineSpec) { s.SubnetID = arm.DefaultSubnet + "-2" }
	elsewhere := func(s *infrav1.AzureMachineSpec) {
		s.SubnetID, s.Zones, s.VMSize = strings.ToUpper(arm.DefaultSubnet), []string{"2"}, "Standard_E2s_v5"
	}
	for _, late := range []bool{false, true} {
		f := newFixture(t, arm.Options{})
		memory := shortage.New(clocktesting.NewFakePassiveClock(f.clock.Now().Add(time.Minute)), 0)
		short := func(changes ...func(*infrav1.AzureMachineSpec)) bool {
			return !memory.Mark("subscription", []driver.Candidate{f.candidate(changes...)})[0].ShortSince.IsZero()
		}
		if late {
			f.fault(simulator.Fault{Action: "VirtualMachines_CreateOrUpdate", LaunchFailure: &simulator.Failure{Code: "SubnetIsFull"}})
			f.accepted(launch("m1"))
			f.clock.Step(creation)
			f.Expect(f.list()).To(ConsistOf(And(HaveField("Refused", driver.ClassCapacity), HaveField("RefusedOnlyPlace", true))))
			memory.SawInstances("subscription", f.list())
			f.Expect(short()).To(BeFalse(), "which subnet it was is not in the list")
			continue
		}
		f.cloud.ChangeCatalog(func(c *arm.Catalog) { c.Subnets[0].Full = true })
		_, err := f.Create(f.ctx, launch("m1"))
		memory.Report("subscription", f.candidate(), err)
		f.Expect(short()).To(BeTrue())
		f.Expect(short(elsewhere)).To(BeTrue())
		f.Expect(short(other)).To(BeFalse())
	}
}
