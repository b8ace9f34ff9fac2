package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/test/clouds/aws/simapi"
)

// TestRefusedLaunches lets EC2 have no capacity, then refuse for too many requests, then work: the
// Machine reports each, and the same Machine gets its instance.
func TestRefusedLaunches(t *testing.T) {
	w := sharedWorld(t, "refused-launches")
	capacity := w.refuse("InsufficientInstanceCapacity")
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(1))).To(Succeed())
	w.Eventually(w.machines).Should(HaveLen(1))
	machine := w.machines()[0]
	w.expectRefused(&machine, "InsufficientCapacity", "InsufficientInstanceCapacity")

	throttled := w.refuse("RequestLimitExceeded")
	w.Expect(w.sandbox.EC2.RemoveFault(w.ctx, capacity)).To(Succeed())
	w.expectRefused(&machine, "Throttled", "RequestLimitExceeded")

	w.Expect(w.sandbox.EC2.RemoveFault(w.ctx, throttled)).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 1)).To(Succeed())
	w.Expect(w.scenario.Watch.UIDs()).To(HaveKey(string(machine.UID)), "it is the same Machine")
	w.Expect(w.live()).To(HaveLen(1))
}

// refuse makes every launch fail until the fault is removed.
func (w *world) refuse(code string) string {
	w.t.Helper()
	id, err := w.sandbox.EC2.AddFault(w.ctx, simapi.Fault{Action: "RunInstances", Error: &simapi.APIError{Code: code}})
	w.Expect(err).NotTo(HaveOccurred())
	return id
}

// expectRefused waits until both the AWSMachine and the Machine report why there is no instance.
func (w *world) expectRefused(machine *clusterv1.Machine, reason, code string) {
	w.t.Helper()
	infra := &infrav1.AWSMachine{}
	infra.Namespace, infra.Name = machine.Namespace, machine.Spec.InfrastructureRef.Name
	w.awaitCondition(infra, func() []metav1.Condition { return infra.Status.Conditions }, "Ready", reports(reason, code))
	w.awaitCondition(machine, machine.GetConditions, clusterv1.MachineInfrastructureReadyCondition, reports(code))
	w.Expect(machine.Status.Phase).To(Equal(string(clusterv1.MachinePhaseProvisioning)))
}
