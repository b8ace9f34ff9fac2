package machinedeployment

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// choose marks Machines and lowers the scale by as many, in the order and by the writes of the cluster autoscaler's
// provider for Cluster API: each Machine is marked before the scale subresource is patched.
func (w *world) choose(machines ...*clusterv1.Machine) {
	for _, machine := range machines {
		before := machine.DeepCopy()
		machine.Annotations = with(machine.Annotations, clusterv1.DeleteMachineAnnotation, "2026-11-20 14:00:00 +0000 UTC")
		w.G.Expect(direct.Patch(w.Ctx, machine, client.MergeFrom(before))).To(Succeed())
		w.scaleBy(-1)
	}
}

func (w *world) machinesOf(template string) []*clusterv1.Machine {
	var found []*clusterv1.Machine
	hashes := map[string]bool{}
	for _, set := range w.allSets() {
		if set.Spec.Template.Spec.InfrastructureRef.Name == template {
			hashes[set.Labels[clusterv1.MachineDeploymentUniqueLabel]] = true
		}
	}
	for _, machine := range w.Machines() {
		if hashes[machine.Labels[clusterv1.MachineDeploymentUniqueLabel]] {
			found = append(found, &machine)
		}
	}
	return found
}

// TestChosenMachinesGoInTheMiddleOfARollout pauses a rollout half-way, chooses a Machine of either set, and lets
// the rollout continue: these two go, and of the new Machines no other.
func TestChosenMachinesGoInTheMiddleOfARollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(4, limits(ptr.To(intstr.FromInt32(2)), nil), func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
	})
	w.start(t)
	w.Eventually(w.settled(4, "a", "1"))
	w.machines.hold(true)
	w.update(toTemplateB)
	w.Eventually(w.givesUp("a", 2))
	w.Eventually(w.counts(4, 2, 4))
	w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Paused = ptr.To(true) })
	w.machines.hold(false)
	w.Eventually(w.counts(2, 2, 4))

	older, newer := w.machinesOf("a"), w.machinesOf("b")
	w.choose(older[0], newer[0])
	w.Eventually(w.counts(1, 1, 2))
	w.G.Expect(names(w.Machines())).To(ConsistOf(older[1].Name, newer[1].Name), "those went and no others")

	w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Paused = nil })
	w.Eventually(w.settled(2, "b", "2"))
	w.G.Expect(names(w.Machines())).To(ContainElement(newer[1].Name), "no new Machine was deleted that was not chosen")
}

// counts is satisfied by numbers of Machines of template a and b that exist, and of those of both that are available.
func (w *world) counts(a, b, available int) func(Gomega) {
	return func(g Gomega) {
		deployment := w.current()
		g.Expect(deployment.Status.ObservedGeneration).To(Equal(deployment.Generation))
		g.Expect(deployment.Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(available)))
		g.Expect(w.machinesOf("a")).To(HaveLen(a))
		g.Expect(w.machinesOf("b")).To(HaveLen(b))
	}
}

// givesUp is satisfied when so many Machines of a template are being deleted. How many are available does not show that: the new
// ones may not be yet.
func (w *world) givesUp(template string, n int) func(Gomega) {
	return func(g Gomega) {
		going := 0
		for _, machine := range w.machinesOf(template) {
			if !machine.DeletionTimestamp.IsZero() {
				going++
			}
		}
		g.Expect(going).To(Equal(n))
	}
}

// TestChosenMachinesGoAndNoOthers scales down outside a rollout by the scale subresource.
func TestChosenMachinesGoAndNoOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(4)
	w.start(t)
	w.Eventually(w.settled(4, "a", "1"))
	machines := w.machinesOf("a")
	w.choose(machines[1], machines[3])
	w.Eventually(w.settled(2, "a", "1"))
	w.G.Expect(names(w.Machines())).To(ConsistOf(machines[0].Name, machines[2].Name))
}

func TestRecreateLetsAllGoFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(3, func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{RecreateAnnotation: "true"}
	})
	w.start(t)
	w.Eventually(w.settled(3, "a", "1"))
	w.machines.hold(true)
	w.update(toTemplateB)
	w.Eventually(func(g Gomega) {
		for _, machine := range w.machinesOf("a") {
			g.Expect(machine.DeletionTimestamp).NotTo(BeNil())
		}
	})
	w.Eventually(
		w.reports(clusterv1.MachineDeploymentAvailableCondition, clusterv1.MachineDeploymentNotAvailableReason, "at least 3 required"),
	)
	w.G.Expect(w.machinesOf("b")).To(BeEmpty())
	// One after another may be deleted; a new one is created only after the last is gone.
	for left := 2; left >= 0; left-- {
		w.G.Expect(w.machinesOf("b")).To(BeEmpty())
		w.machines.release(w.machinesOf("a")[0].Name)
		w.Eventually(func(g Gomega) { g.Expect(w.machinesOf("a")).To(HaveLen(left)) })
	}
	w.machines.hold(false)
	w.Eventually(w.settled(3, "b", "2"))
}
