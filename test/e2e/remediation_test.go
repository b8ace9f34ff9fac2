package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRemediation lets a health check find two of three Machines unhealthy: both are replaced, one after the other as
// maxInFlight says, and the third stays.
func TestRemediation(t *testing.T) {
	w := manyWorld(t, &failing, "remediation")
	w.start(3)
	w.change(func(md *clusterv1.MachineDeployment) { md.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromInt32(1)) })
	machines := w.machines()
	w.scenario.Watch.ResetExtremes()
	for i := range machines[:2] {
		w.findUnhealthy(&machines[i])
	}

	unhealthy := map[string]bool{string(machines[0].UID): true, string(machines[1].UID): true}
	w.Eventually(func() bool {
		deleting := 0
		for _, m := range w.scenario.Watch.Machines() {
			if m.Deleting {
				deleting++
				w.Expect(unhealthy).To(HaveKey(m.UID), "only unhealthy Machines go")
			}
		}
		w.Expect(deleting).To(BeNumerically("<=", 1), "maxInFlight is 1")
		uids := w.running()
		return len(uids) == 3 && !uids[string(machines[0].UID)] && !uids[string(machines[1].UID)]
	}).Should(BeTrue())
	w.Expect(w.scenario.Watch.UIDs()).To(HaveKey(string(machines[2].UID)))
	w.Expect(w.scenario.Watch.Extremes().Most).To(BeNumerically("<=", 3), "an unhealthy Machine is deleted before another is created")
	w.expectDeployment(3)
	w.expectInstances(3)
}

// findUnhealthy does what a health check does: it sets the conditions by which a Machine is unhealthy and its owner has to act.
func (w *world) findUnhealthy(machine *clusterv1.Machine) {
	w.t.Helper()
	w.Eventually(func() error {
		if err := w.control.Get(w.ctx, client.ObjectKeyFromObject(machine), machine); err != nil {
			return err
		}
		before := machine.DeepCopy()
		for _, condition := range []metav1.Condition{
			{Type: clusterv1.MachineHealthCheckSucceededCondition, Reason: clusterv1.MachineHealthCheckUnhealthyNodeReason},
			{Type: clusterv1.MachineOwnerRemediatedCondition, Reason: clusterv1.MachineOwnerRemediatedWaitingForRemediationReason},
		} {
			condition.Status, condition.LastTransitionTime = metav1.ConditionFalse, metav1.Now()
			machine.Status.Conditions = append(machine.Status.Conditions, condition)
		}
		return w.control.Status().Patch(w.ctx, machine, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}).Should(Succeed())
}
