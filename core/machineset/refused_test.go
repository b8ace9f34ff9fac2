package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/core/machines"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
	"millwright.dev/test/refuse"
)

// infraMachines is what a quota calls the infrastructure machines.
var infraMachines = corev1.ResourceName("count/" + version.CRDName(schema.GroupKind{Group: coretest.Group, Kind: workers.InfraKind}))

// quota bounds the infrastructure machines of the world. Its status is what the API server goes by.
func (w *world) quota(hard int64) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "q"}}
	limit := corev1.ResourceList{infraMachines: *resource.NewQuantity(hard, resource.DecimalSI)}
	if err := direct.Get(w.Ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
		quota.Spec.Hard = limit
		w.Create(quota)
	} else {
		quota.Spec.Hard = limit
		w.G.Expect(direct.Update(w.Ctx, quota)).To(Succeed())
	}
	quota.Status.Hard = limit
	if quota.Status.Used == nil {
		quota.Status.Used = corev1.ResourceList{infraMachines: resource.MustParse("0")}
	}
	w.G.Expect(direct.Status().Update(w.Ctx, quota)).To(Succeed())
}

// TestOneMachineIsCompletedBeforeTheNext: while the API server refuses infrastructure machines, no further Machines are
// created that would lack theirs, and the set reports it in the API server's words, until there is room.
func TestOneMachineIsCompletedBeforeTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.quota(0)
	w.set(5)
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "exceeded quota: q"))
	name := w.Machines()[0].Name
	w.quiet()
	w.G.Expect(w.Machines()).To(HaveLen(1))
	w.G.Expect(w.Machines()[0].Name).To(Equal(name))
	w.quota(10)
	w.Eventually(w.settled(5))
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetNotScalingUpReason, ""))
}

// TestLastMachineThatCannotBeCompletedIsSeen: no Machine is missing, and yet the set is not what it shall be.
func TestLastMachineThatCannotBeCompletedIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.quota(0)
	w.set(1)
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "exceeded quota: q"))
	w.G.Expect(w.condition(w.G, clusterv1.MachineSetScalingUpCondition).Status).To(Equal(metav1.ConditionTrue))
	w.quota(1)
	w.Eventually(w.settled(1))
}

func isSet(object client.Object) bool {
	_, ok := object.(*clusterv1.MachineSet)
	return ok
}

// TestRefusedMetadataOfASetIsSeen: without the finalizer and the label nothing is created.
func TestRefusedMetadataOfASetIsSeen(t *testing.T) {
	t.Parallel()
	for _, text := range []string{clusterv1.MachineSetFinalizer, clusterv1.ClusterNameLabel} {
		t.Run(text, func(t *testing.T) {
			w := newWorld(t)
			policy := &refuse.Patches{}
			policy.Begin(isSet, text)
			w.set(1)
			w.start(t, policy.Wrap)
			w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, "InternalError", refuse.Because))
			w.Eventually(w.reports(clusterv1.MachineSetMachinesReadyCondition, "InternalError", refuse.Because))
			w.G.Expect(w.Machines()).To(BeEmpty())
			policy.Lift()
			w.Eventually(w.settled(1))
			w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetNotScalingUpReason, ""))
		})
	}
}

// TestRefusedUpdateOfAMachineIsSeen: no Machine is missing, so that no other condition would report it.
func TestRefusedUpdateOfAMachineIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	w.set(2)
	w.start(t, policy.Wrap)
	w.Eventually(w.settled(2))
	policy.Begin(func(o client.Object) bool { _, ok := o.(*clusterv1.Machine); return ok }, "example.com/color")
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Template.Labels["example.com/color"] = "blue" })
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, "InternalError", refuse.Because))
	w.G.Expect(w.condition(w.G, clusterv1.MachineSetScalingUpCondition).Status).To(Equal(metav1.ConditionFalse))
	policy.Lift()
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetNotScalingUpReason, ""))
}

// TestRefusedEndOfASetIsSeen: everything else is deleted, and the object stays.
func TestRefusedEndOfASetIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	w.set(0)
	w.start(t, policy.Wrap)
	w.Eventually(w.settled(0))
	policy.Begin(isSet, "finalizers")
	w.G.Expect(direct.Delete(w.Ctx, w.current())).To(Succeed())
	w.Eventually(w.reports(clusterv1.MachineSetDeletingCondition, clusterv1.MachineSetDeletingReason, refuse.Because))
	policy.Lift()
	w.Eventually(func(g Gomega) {
		err := direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: "s"}, &clusterv1.MachineSet{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})
}
