package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAutoscaler does what the cluster autoscaler does: it marks Machines and lowers the replicas. Exactly those are deleted,
// also in the middle of a rollout, and a Node that a user has excluded from the autoscaler stays excluded.
func TestAutoscaler(t *testing.T) {
	w := manyWorld(t, &rolling, "autoscaler")
	w.start(6, surge(int64(1), int64(0)))
	machines := w.machines()
	w.keepByUser(machines[5].Status.NodeRef.Name)
	w.markForDeletion(&machines[1])
	w.markForDeletion(&machines[3])
	w.scaleTo(4)
	left := w.scenario.Watch.UIDs()
	for _, i := range []int{0, 2, 4, 5} {
		w.Expect(left).To(HaveKey(string(machines[i].UID)), "%s was not marked", machines[i].Name)
	}

	w.scenario.Watch.ResetExtremes()
	w.Expect(w.scenario.Roll(w.ctx)).To(Succeed())
	var chosen clusterv1.Machine
	w.Eventually(func() bool {
		for uid, machine := range w.ofTemplate(nextTemplate) {
			if w.running()[uid] {
				chosen = machine
				return true
			}
		}
		return false
	}).Should(BeTrue())
	if node := w.nodes()[machines[5].Status.NodeRef.Name]; node != nil {
		w.Expect(node.Annotations).To(HaveKeyWithValue(scaleDownDisabled, "user"), "it is outdated, and stays as the user has set it")
	}
	fresh := w.ofTemplate(nextTemplate)
	w.markForDeletion(&chosen)
	w.change(func(md *clusterv1.MachineDeployment) { *md.Spec.Replicas = 3 })
	w.Expect(w.scenario.AwaitRolled(w.ctx, left, 3)).To(Succeed())
	for uid, machine := range fresh {
		if uid == string(chosen.UID) {
			w.Expect(w.scenario.Watch.UIDs()).NotTo(HaveKey(uid), "%s was marked", machine.Name)
			continue
		}
		w.Expect(w.scenario.Watch.UIDs()).To(HaveKey(uid), "%s was not marked", machine.Name)
	}
	w.expectDeployment(3)
	w.expectInstances(3)
}

// markForDeletion is how an autoscaler selects the Machine to delete.
func (w *world) markForDeletion(machine *clusterv1.Machine) {
	w.t.Helper()
	marked := machine.DeepCopy()
	if marked.Annotations == nil {
		marked.Annotations = map[string]string{}
	}
	marked.Annotations[clusterv1.DeleteMachineAnnotation] = "true"
	w.Expect(w.control.Patch(w.ctx, marked, client.MergeFrom(machine))).To(Succeed())
}

// keepByUser excludes a Node from the autoscaler as a user does.
func (w *world) keepByUser(node string) {
	w.t.Helper()
	object := w.nodes()[node]
	w.Expect(object).NotTo(BeNil())
	kept := object.DeepCopy()
	if kept.Annotations == nil {
		kept.Annotations = map[string]string{}
	}
	kept.Annotations[scaleDownDisabled] = "user"
	w.Expect(w.target.Patch(w.ctx, kept, client.MergeFrom(object))).To(Succeed())
}
