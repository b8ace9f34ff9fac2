package e2e

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/simapi"
)

// TestProviderKilledAfterLaunch kills the AWS provider when EC2 has launched the instances and the answer
// has not arrived: after its restart each Machine has one instance.
func TestProviderKilledAfterLaunch(t *testing.T) {
	w := sharedWorld(t, "killed-after-launch")
	w.Expect(w.sandbox.EC2.ClearCalls(w.ctx)).To(Succeed())
	fault, err := w.sandbox.EC2.AddFault(w.ctx, simapi.Fault{Action: "RunInstances", HoldAfter: true})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace)).To(Succeed())

	w.Eventually(func() (int, error) {
		f, err := w.sandbox.EC2.Fault(w.ctx, fault)
		return f.Holding, err
	}).Should(Equal(3), "three launches have taken effect and are not answered")
	launched := w.live()
	w.Expect(launched).To(HaveLen(3))
	w.sandbox.AWS.Kill()
	for _, m := range w.machines() {
		w.Expect(m.Spec.ProviderID).To(BeEmpty(), "nothing was written back")
	}
	w.Expect(w.sandbox.EC2.RemoveFault(w.ctx, fault)).To(Succeed())
	w.Expect(w.sandbox.AWS.Start(w.ctx)).To(Succeed())

	w.Expect(w.scenario.AwaitRunning(w.ctx, 3)).To(Succeed())
	w.expectSameInstances(launched)
	w.expectOneInstancePerToken(3)
}

// TestLostAnswer cuts connections after EC2 has created the instances, without killing any process. The provider calls again with the
// same token, or finds its instance before that.
func TestLostAnswer(t *testing.T) {
	w := sharedWorld(t, "lost-answer")
	w.Expect(w.sandbox.EC2.ClearCalls(w.ctx)).To(Succeed())
	fault, err := w.sandbox.EC2.AddFault(w.ctx, simapi.Fault{Action: "RunInstances", Cut: simapi.CutAfter, Count: 4})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(2))).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 2)).To(Succeed())
	w.Expect(w.live()).To(HaveLen(2))
	w.expectOneInstancePerToken(2)
	lost, err := w.sandbox.EC2.Fault(w.ctx, fault)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(lost.Hits).To(BeNumerically(">=", 2), "the first answer about each of them was lost")
}

// expectSameInstances makes sure that the instances are those that were launched at first.
func (w *world) expectSameInstances(launched map[string]simapi.Instance) {
	w.t.Helper()
	live := w.live()
	w.Expect(live).To(HaveLen(len(launched)))
	for id := range launched {
		w.Expect(live).To(HaveKey(id))
	}
}

// expectOneInstancePerToken makes sure that EC2 has created one instance for each token, terminated ones
// included.
func (w *world) expectOneInstancePerToken(count int) {
	w.t.Helper()
	calls, err := w.sandbox.EC2.Calls(w.ctx, "RunInstances")
	w.Expect(err).NotTo(HaveOccurred())
	instances := map[string]map[string]bool{}
	for _, call := range calls {
		w.Expect(call.ClientToken).NotTo(BeEmpty())
		if instances[call.ClientToken] == nil {
			instances[call.ClientToken] = map[string]bool{}
		}
		for _, id := range call.Resources {
			instances[call.ClientToken][id] = true
		}
	}
	w.Expect(instances).To(HaveLen(count))
	for token, ids := range instances {
		w.Expect(ids).To(HaveLen(1), "token %s", token)
	}
}
