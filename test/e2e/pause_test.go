package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machinedeployment"
)

// settled is how long nothing may happen where nothing should.
const settled = 5 * time.Second

// TestPauseAndRollback pauses a rollout before it begins, resumes it, and in its middle rolls back to the previous
// revision: no existing Machine of that revision is replaced, and the marks are removed from its Node.
func TestPauseAndRollback(t *testing.T) {
	w := manyWorld(t, &rolling, "rollback")
	w.start(4, surge(int64(1), int64(0)))
	old := w.scenario.Watch.UIDs()

	w.change(func(md *clusterv1.MachineDeployment) { md.Spec.Paused = ptr.To(true) })
	w.Expect(w.scenario.Roll(w.ctx)).To(Succeed())
	w.Eventually(func() bool { md := w.deployment(); return md.Status.ObservedGeneration == md.Generation }).Should(BeTrue())
	w.Consistently(w.scenario.Watch.UIDs, settled).Should(Equal(old), "a paused rollout replaces nothing")

	w.change(func(md *clusterv1.MachineDeployment) { md.Spec.Paused = ptr.To(false) })
	w.Eventually(func() int { return len(w.ofTemplate(nextTemplate)) }).Should(BeNumerically(">=", 2))
	w.change(func(md *clusterv1.MachineDeployment) {
		md.Annotations = map[string]string{machinedeployment.RollbackToAnnotation: "0"}
	})
	w.Eventually(func() string { return w.deployment().Spec.Template.Spec.InfrastructureRef.Name }).Should(Equal(firstTemplate))
	kept := w.ofTemplate(firstTemplate)

	w.Eventually(func() int { return len(w.running()) + 10*len(w.ofTemplate(nextTemplate)) }).Should(Equal(4))
	w.expectDeployment(4)
	w.Expect(w.ofTemplate(firstTemplate)).To(HaveLen(4))
	for uid, machine := range kept {
		w.Expect(w.scenario.Watch.UIDs()).To(HaveKey(uid), "%s is of the revision that was rolled back to", machine.Name)
	}
	w.Eventually(func(g Gomega) {
		for _, node := range w.nodes() {
			g.Expect(marked(node)).To(BeFalse(), node.Name)
			g.Expect(node.Annotations).NotTo(HaveKey(scaleDownDisabled))
		}
	}).Should(Succeed())
	w.Expect(w.deployment().Annotations).NotTo(HaveKey(machinedeployment.RollbackToAnnotation), "it was done once")
}
