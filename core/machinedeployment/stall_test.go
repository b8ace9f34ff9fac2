package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const rollingOut = clusterv1.MachineDeploymentRollingOutCondition

func shortTimeout(d *clusterv1.MachineDeployment) {
	d.Annotations = with(d.Annotations, ProgressDeadlineAnnotation, "3s")
}

// notAvailable checks what the deployment reports while none of its Machines is available.
func (w *world) notAvailable(g Gomega) {
	deployment := w.current()
	g.Expect(meta.IsStatusConditionFalse(deployment.Status.Conditions, clusterv1.MachineDeploymentAvailableCondition)).To(BeTrue())
	g.Expect(deployment.Status.Phase).To(Equal("ScalingUp"))
}

// TestFailedRolloutIsSeenWithoutAnOutdatedMachine lets rollouts fail that have let all outdated Machines go: RollingOut
// stays True and names what is awaited, and the deployment is neither available nor running.
func TestFailedRolloutIsSeenWithoutAnOutdatedMachine(t *testing.T) {
	for name, change := range map[string]func(*clusterv1.MachineDeployment){
		"Recreate": func(d *clusterv1.MachineDeployment) { d.Annotations[RecreateAnnotation] = "true" },
		"maxUnavailable 100 %": func(d *clusterv1.MachineDeployment) {
			d.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{
				Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
					MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromString("100%")),
				},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.deployment(2, shortTimeout, change)
			w.start(t)
			w.Eventually(w.settled(2, "a", "1"))
			w.machines.setBroken("b")
			w.update(toTemplateB)
			w.Eventually(w.reports(rollingOut, ProgressDeadlineExceededReason, "InfrastructureReady is False: "+outOfStock))
			w.Eventually(w.reports(rollingOut, ProgressDeadlineExceededReason, "2 of 2 replicas are up to date, 0 available"))
			w.notAvailable(w.G)
			w.machines.setBroken("")
			w.Eventually(w.settled(2, "b", "2"))
			w.Eventually(w.reports(rollingOut, clusterv1.MachineDeploymentNotRollingOutReason, ""))
		})
	}
}

// TestNewDeploymentThatNeverComesUpIsSeen has one that was never available.
func TestNewDeploymentThatNeverComesUpIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(1)
	w.machines = &machinePlayer{broken: "a"}
	w.start(t)
	w.Eventually(w.reports(rollingOut, clusterv1.MachineDeploymentRollingOutReason, "1 of 1 replicas are up to date, 0 available"))
	w.notAvailable(w.G)
	w.update(shortTimeout)
	w.Eventually(w.reports(rollingOut, ProgressDeadlineExceededReason, outOfStock))
	w.notAvailable(w.G)
}

// TestReplacedMachinesAreNoProgress deletes the Machines that do not come up again and again, as remediation does,
// and more often than the deadline is long.
func TestReplacedMachinesAreNoProgress(t *testing.T) {
	w := newWorld(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	w.clock = now
	w.deployment(2)
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	w.machines.setBroken("b")
	w.update(toTemplateB)
	w.Eventually(w.reports(rollingOut, clusterv1.MachineDeploymentRollingOutReason, "1 of 2"))
	// Altogether longer than the deadline, each time shorter.
	for range 3 {
		now.SetTime(now.Now().Add(DefaultProgressDeadline * 2 / 5))
		w.replaceCurrent()
	}
	w.Eventually(w.reports(rollingOut, ProgressDeadlineExceededReason, "No progress since"))
}

// TestStallOfACompleteDeploymentSurvivesARestart has a Machine that is lost after a rollout is complete, and whose replacements
// do not come up. The process exits all the while.
func TestStallOfACompleteDeploymentSurvivesARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2, shortTimeout)
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	w.Eventually(w.reports(rollingOut, clusterv1.MachineDeploymentNotRollingOutReason, ""))
	w.machines.setBroken("a")
	machine := w.Machines()[0]
	w.G.Expect(direct.Delete(w.Ctx, &machine)).To(Succeed())
	w.Eventually(func(g Gomega) { g.Expect(w.current().Annotations).To(HaveKey(ProgressAnnotation)) })
	// On a computer that is busy the deadline may have passed by now.
	w.G.Expect(meta.FindStatusCondition(w.current().Status.Conditions, rollingOut)).To(HaveValue(HaveField("Reason",
		BeElementOf(clusterv1.MachineDeploymentNotRollingOutReason, ProgressDeadlineExceededReason))), "it is no rollout")
	recorded := w.current().Annotations[ProgressAnnotation]
	w.Stop()
	w.start(t)
	w.Eventually(w.reports(rollingOut, ProgressDeadlineExceededReason, outOfStock))
	w.G.Expect(w.current().Annotations).To(HaveKeyWithValue(ProgressAnnotation, recorded), "the restart has not begun it again")
	w.machines.setBroken("")
	w.Eventually(func(g Gomega) {
		w.settled(2, "a", "1")(g)
		g.Expect(w.current().Annotations).NotTo(HaveKey(ProgressAnnotation))
	})
	w.Eventually(w.reports(rollingOut, clusterv1.MachineDeploymentNotRollingOutReason, ""))
}

// replaceCurrent deletes the Machines of the current set, and waits until others have failed in their place.
func (w *world) replaceCurrent() {
	before := w.ofCurrentSet()
	for uid := range before {
		w.G.Expect(client.IgnoreNotFound(direct.Delete(w.Ctx, before[uid]))).To(Succeed())
	}
	w.Eventually(func(g Gomega) {
		after := w.ofCurrentSet()
		g.Expect(after).To(HaveLen(len(before)))
		for uid, machine := range after {
			g.Expect(before).NotTo(HaveKey(uid))
			g.Expect(meta.IsStatusConditionFalse(machine.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition)).To(BeTrue())
		}
	})
}

// ofCurrentSet are the Machines of the current set.
func (w *world) ofCurrentSet() map[types.UID]*clusterv1.Machine {
	current, found := w.currentSet(), map[types.UID]*clusterv1.Machine{}
	for _, machine := range w.Machines() {
		if machine.Labels[clusterv1.MachineDeploymentUniqueLabel] == current.Labels[clusterv1.MachineDeploymentUniqueLabel] {
			found[machine.UID] = &machine
		}
	}
	return found
}
