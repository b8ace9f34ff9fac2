package main

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// machineOfSet makes an AWSMachine whose Machine a MachineSet of that UID controls, in any of three zones.
func (f *fixture) machineOfSet(set, name string, adjust ...func(*infrav1.AWSMachine)) {
	f.t.Helper()
	f.secret(name)
	// From the beginning, as a MachineSet does: what the cache shows of it first is what counts.
	owner := f.ownerMachine(name, name, true, func(m *clusterv1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: set,
			UID: types.UID(set), Controller: new(true)}}
	})
	f.awsMachine(name, owner, func(m *infrav1.AWSMachine) {
		m.Spec.Subnets = []infrav1.SubnetReference{{ID: subnetA}, {ID: subnetB}, {ID: simulator.DefaultSubnetC}}
		for _, a := range adjust {
			a(m)
		}
	})
}

// perSubnet counts the instances that live.
func (f *fixture) perSubnet() map[string]int {
	counts := map[string]int{}
	for _, i := range f.instances() {
		if i.State == "running" || i.State == "pending" {
			counts[i.SubnetID]++
		}
	}
	return counts
}

func TestMachinesOfASetAreSpreadOverZones(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.cluster(true)
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprintf("m%d", i))
		f.machineOfSet("set", names[i])
	}
	f.start() // finds all of them at once
	for _, name := range names {
		f.becomesReady(name)
	}
	f.Expect(f.perSubnet()).To(Equal(map[string]int{subnetA: 3, subnetB: 3, simulator.DefaultSubnetC: 3}))

	gone, err := f.get("m4")
	f.Expect(err).NotTo(HaveOccurred())
	owner := &clusterv1.Machine{}
	f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(gone), owner)).To(Succeed())
	base := owner.DeepCopy()
	owner.Finalizers = []string{"test/drain"} // it is being drained: its instance stays for long
	f.Expect(f.client.Patch(f.ctx, owner, client.MergeFrom(base))).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, owner)).To(Succeed())
	f.machineOfSet("set", "surge")
	f.Expect(f.becomesReady("surge").Status.FailureDomain).To(Equal(gone.Status.FailureDomain), "one that leaves does not count")

	f.stop()
	for i := range 3 {
		f.machineOfSet("other", fmt.Sprintf("other%d", i))
	}
	f.start() // what is known is what is recorded
	domains := map[string]int{}
	for i := range 3 {
		domains[f.becomesReady(fmt.Sprintf("other%d", i)).Status.FailureDomain]++
	}
	f.Expect(domains).To(HaveLen(3), "each set by itself")
}

func TestTheShareOfAZoneWithoutCapacityGoesToAllOthers(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{Action: "RunInstances", Parameters: map[string]string{"NetworkInterface.1.SubnetId": subnetA},
		Error: &simapi.APIError{Code: "InsufficientInstanceCapacity"}})
	f.cluster(true)
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("m%d", i))
		f.machineOfSet("set", names[i])
	}
	f.start()
	for _, name := range names {
		f.becomesReady(name)
	}
	f.Expect(f.perSubnet()).To(Equal(map[string]int{subnetB: 4, simulator.DefaultSubnetC: 4}))
}
