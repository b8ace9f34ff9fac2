package machineset

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "millwright.dev/test/coretest/builder"
)

// goingMachines plays the cache and the API server while a Machine goes: it is in both until the API server has answered.
type goingMachines struct {
	client.Client
	set      *clusterv1.MachineSet
	answered bool
}

func (c *goingMachines) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	stays, goes := ownedBy(c.set, Machine("stays")), ownedBy(c.set, Machine("goes", Deleting))
	switch list := list.(type) {
	case *clusterv1.MachineList:
		list.Items = []clusterv1.Machine{*stays}
		if !c.answered {
			list.Items = append(list.Items, *goes)
		}
	case *metav1.PartialObjectMetadataList:
		list.Items = []metav1.PartialObjectMetadata{{ObjectMeta: stays.ObjectMeta}, {ObjectMeta: goes.ObjectMeta}}
		c.answered = true
	}
	return nil
}

func ownedBy(set *clusterv1.MachineSet, machine *clusterv1.Machine) *clusterv1.Machine {
	machine.Labels = map[string]string{clusterv1.MachineSetNameLabel: set.Name}
	machine.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, setKind)}
	return machine
}

// TestMachineThatGoesWhileAScaleDownIsConfirmed checks that such a Machine counts no longer: as one that the cache does not
// show yet it would be a replica until the process exits, and no event would report that the scale-down is complete.
func TestMachineThatGoesWhileAScaleDownIsConfirmed(t *testing.T) {
	g := NewWithT(t)
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set", UID: "set"}}
	api := &goingMachines{set: set}
	r := &Reconciler{Client: api, APIReader: api}
	s := begin(set)
	g.Expect(r.confirm(t.Context(), s)).To(Succeed())
	g.Expect(Names(s.machines)).To(Equal("stays"))
	g.Expect(r.expectations.unseenUntil(set.UID)).To(BeZero())
}
