package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/test/refuse"
)

// quota bounds the infrastructure machines of the world. Its status is what the API server goes by.
func (w *world) quota(hard int64) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "q"}}
	limit := corev1.ResourceList{"count/standinmachines." + infraGroup: *resource.NewQuantity(hard, resource.DecimalSI)}
	if err := direct.Get(w.ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
		quota.Spec.Hard = limit
		w.create(quota)
	} else {
		quota.Spec.Hard = limit
		w.g.Expect(direct.Update(w.ctx, quota)).To(Succeed())
	}
	quota.Status.Hard = limit
	if quota.Status.Used == nil {
		quota.Status.Used = corev1.ResourceList{"count/standinmachines." + infraGroup: resource.MustParse("0")}
	}
	w.g.Expect(direct.Status().Update(w.ctx, quota)).To(Succeed())
}

// TestOneMachineIsCompletedBeforeTheNext: while the API server refuses infrastructure machines, no further Machines are
// created that would lack theirs, and the set says so in the API server's words, until there is room.
func TestOneMachineIsCompletedBeforeTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.quota(0)
	w.set(5)
	w.start(t)
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "exceeded quota: q"))
	name := w.machines()[0].Name
	w.quiet()
	w.g.Expect(w.machines()).To(HaveLen(1))
	w.g.Expect(w.machines()[0].Name).To(Equal(name))
	w.quota(10)
	w.eventually(w.settled(5))
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetNotScalingUpReason, ""))
}

// TestLastMachineThatCannotBeCompletedIsSeen: no Machine is missing, and yet the set is not what it shall be.
func TestLastMachineThatCannotBeCompletedIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.quota(0)
	w.set(1)
	w.start(t)
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "exceeded quota: q"))
	w.g.Expect(w.condition(w.g, clusterv1.MachineSetScalingUpCondition).Status).To(Equal(metav1.ConditionTrue))
	w.quota(1)
	w.eventually(w.settled(1))
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
			w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, "InternalError", refuse.Because))
			w.eventually(w.reports(clusterv1.MachineSetMachinesReadyCondition, "InternalError", refuse.Because))
			w.g.Expect(w.machines()).To(BeEmpty())
			policy.Lift()
			w.eventually(w.settled(1))
			w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetNotScalingUpReason, ""))
		})
	}
}

// TestRefusedUpdateOfAMachineIsSeen: no Machine is missing, so that no other condition would say it.
func TestRefusedUpdateOfAMachineIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	w.set(2)
	w.start(t, policy.Wrap)
	w.eventually(w.settled(2))
	policy.Begin(func(o client.Object) bool { _, ok := o.(*clusterv1.Machine); return ok }, "example.com/color")
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Template.Labels["example.com/color"] = "blue" })
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, "InternalError", refuse.Because))
	w.g.Expect(w.condition(w.g, clusterv1.MachineSetScalingUpCondition).Status).To(Equal(metav1.ConditionFalse))
	policy.Lift()
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetNotScalingUpReason, ""))
}

// TestRefusedEndOfASetIsSeen: all of it is gone, and the object stays.
func TestRefusedEndOfASetIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	w.set(0)
	w.start(t, policy.Wrap)
	w.eventually(w.settled(0))
	policy.Begin(isSet, "finalizers")
	w.g.Expect(direct.Delete(w.ctx, w.current())).To(Succeed())
	w.eventually(w.reports(clusterv1.MachineSetDeletingCondition, clusterv1.MachineSetDeletingReason, refuse.Because))
	policy.Lift()
	w.eventually(func(g Gomega) {
		err := direct.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "s"}, &clusterv1.MachineSet{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})
}
