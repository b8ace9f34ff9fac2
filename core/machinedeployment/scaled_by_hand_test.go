package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/core/safety/overshoot"
)

// scaleSet scales a MachineSet of the deployment, as `kubectl scale machineset` does.
func (w *world) scaleSet(set *clusterv1.MachineSet, replicas int32) {
	before := set.DeepCopy()
	set.Spec.Replicas = ptr.To(replicas)
	w.G.Expect(direct.Patch(w.Ctx, set, client.MergeFrom(before))).To(Succeed())
}

// While a deployment is paused, its sets are scaled by hand: the ceiling follows them, and nothing is frozen.
func TestBounded_DeploymentPaused_SetScaledByHand_GetsItsReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.overshoot = &overshoot.Options{Up: 2, Period: time.Second}
	w.deployment(1)
	w.start(t)
	w.Eventually(w.running(1))
	w.update(func(d *clusterv1.MachineDeployment) {
		d.Annotations = with(d.Annotations, clusterv1.PausedAnnotation, "")
	})
	w.Eventually(func(g Gomega) {
		g.Expect(w.current().Status.Conditions).To(ContainElement(
			And(HaveField("Type", clusterv1.PausedCondition), HaveField("Status", BeEquivalentTo("True")))))
	})
	set := w.listSets()[0]
	w.scaleSet(&set, 9)
	w.Eventually(func(g Gomega) { g.Expect(w.Machines()).To(HaveLen(9)) })
	w.G.Expect(w.current().Labels).NotTo(HaveKey(overshoot.FrozenLabel))

	w.update(func(d *clusterv1.MachineDeployment) { delete(d.Annotations, clusterv1.PausedAnnotation) })
	w.Eventually(w.running(1))
	w.Eventually(func(g Gomega) { g.Expect(w.current().Labels).NotTo(HaveKey(overshoot.FrozenLabel)) })
}

// A set that is scaled by hand while its deployment works creates no more than the ceiling, and the deployment takes it back.
func TestBounded_SetScaledByHand_IsTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.Eventually(w.running(2))
	set := w.listSets()[0]
	w.scaleSet(&set, 50)
	all := map[types.UID]bool{}
	w.Eventually(func(g Gomega) {
		for _, machine := range w.Machines() {
			all[machine.UID] = true
		}
		g.Expect(len(all)).To(BeNumerically("<=", 2+1+machines.Margin))
		w.running(2)(g)
	})
}
