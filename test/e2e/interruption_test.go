package e2e

import (
	"fmt"
	"path"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// notice is the time that EC2 gives before it reclaims a spot instance.
const notice = 2 * time.Minute

// spot edits the sample AWSMachineTemplate.
func spot(object *unstructured.Unstructured) {
	if object.GetKind() == "AWSMachineTemplate" {
		_ = unstructured.SetNestedMap(object.Object, map[string]any{}, "spec", "template", "spec", "spot")
	}
}

// TestInterruption: EC2 announces that it reclaims one of two spot instances. Its Node is cordoned at once and drained as far as a budget
// allows, before the two minutes are over; then the Machine is deleted, and its MachineSet creates another.
func TestInterruption(t *testing.T) {
	w := manyWorld(t, &failing, "interruption")
	w.start(2, spot)
	w.Expect(w.scenario.DeployWorkload(w.ctx, 4, 4)).To(Succeed())
	machine := w.machineWithPods()
	node, pods := machine.Status.NodeRef.Name, w.podsOn(machine.Status.NodeRef.Name)

	w.sandbox.Queue.Send(fmt.Sprintf(`{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","region":"us-east-1",`+
		`"time":%q,"detail":{"instance-id":%q,"instance-action":"terminate"}}`,
		time.Now().UTC().Format(time.RFC3339), path.Base(machine.Spec.ProviderID)), time.Now())
	w.awaitCondition(machine, machine.GetConditions, clusterv1.MachineDeletingCondition, func(c *metav1.Condition) error {
		return describes(c, clusterv1.MachineDeletingDrainingNodeReason)
	})
	w.expectCordoned(node)
	w.Expect(w.podsOn(node)).To(Equal(pods), "the budget holds")
	w.Expect(w.live()).To(HaveKey(path.Base(machine.Spec.ProviderID)))

	w.setMinAvailable(3)
	w.Eventually(w.scenario.Watch.UIDs).WithTimeout(notice).ShouldNot(HaveKey(string(machine.UID)))
	w.Expect(w.scenario.AwaitRunning(w.ctx, 2)).To(Succeed())
	w.Expect(w.scenario.AwaitWorkload(w.ctx, 4)).To(Succeed())
	w.Expect(w.scenario.Watch.Violation()).NotTo(HaveOccurred())
	w.expectInstances(2)
	w.Eventually(func() int { w.sandbox.Queue.Redeliver(); return w.sandbox.Queue.Left() }).Should(BeZero())
}
