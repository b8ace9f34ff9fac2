package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/sandbox"
)

// silent is how many of seven Nodes do not report again after an outage.
const silent = 3

// stillness is how long forbidden changes are watched for.
const stillness = 5 * time.Second

// TestOutagesWithLosses: Nodes of eight are lost while the cloud's API fails, and then while the target's API server is away for longer
// than the timeout, after which most report again. The core is killed in the middle of each. In the freeze and its grace nothing is
// replaced; there are never more replacements in flight than places, and no more are launched than were lost.
func TestOutagesWithLosses(t *testing.T) {
	w := manyWorld(t, &failing, "outages")
	l := w.startLosses(8, 2)
	direct, err := w.sandbox.TargetKubeconfig(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())

	fault, err := w.sandbox.EC2.AddFault(w.ctx, simapi.Fault{Action: "*", Error: &simapi.APIError{Code: "ServiceUnavailable"}})
	w.Expect(err).NotTo(HaveOccurred())
	l.loseNodes(func(*clusterv1.Machine) bool { return len(l.lost) < 4 })
	w.Eventually(func() int { return len(l.goneOrGoing(l.since)) }).Should(Equal(l.places), "as many as there are places")
	w.sandbox.Core.Kill()
	w.Expect(w.sandbox.Core.Start(w.ctx)).To(Succeed())
	w.Consistently(func() int { return len(l.goneOrGoing(l.since)) }, stillness).Should(Equal(l.places), "the restarted core knows of them")
	w.Expect(w.sandbox.EC2.RemoveFault(w.ctx, fault)).To(Succeed())
	l.awaitHealed()

	way := w.open(direct)
	w.rotate(way.kubeconfig)
	w.Eventually(way.used.Load).Should(BeNumerically(">", 0))
	way.close()
	w.rotate(way.kubeconfig, "\n")
	w.Eventually(w.remediationAllowed).Should(Equal("False"))
	l.begin()
	l.loseNodes(func(*clusterv1.Machine) bool { return len(l.lost) < 7 })
	w.sandbox.Core.Kill()
	w.Expect(w.sandbox.Core.Start(w.ctx)).To(Succeed())
	w.Consistently(w.remediationAllowed, stillness).Should(Equal("False"), "the restarted core knows of the outage")
	for _, m := range w.machines() {
		if len(l.lost) > silent && l.lost[string(m.UID)] {
			delete(l.lost, string(m.UID))
			w.setReady(m.Status.NodeRef.Name, corev1.ConditionTrue, "KubeletReady")
		}
	}
	w.Expect(l.lost).To(HaveLen(silent), "four report again")
	w.Expect(l.goneOrGoing(l.since)).To(BeEmpty(), "nothing is replaced in the outage")
	w.rotate(direct)
	w.Eventually(w.remediationAllowed).Should(Equal("True"))
	ended := w.allowedSince()
	l.awaitHealed()
	// The condition may be written some time after the first deletion: both follow from the end of the grace.
	w.Expect(l.goneOrGoing(ended.Add(-manyGrace/2))).To(Equal(l.lost), "nothing was replaced in the grace")
}

// allowedSince is since when the Cluster allows the replacement of its Machines, to a second.
func (w *world) allowedSince() time.Time {
	w.t.Helper()
	cluster := &clusterv1.Cluster{}
	w.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: sandbox.SampleCluster}, cluster)).To(Succeed())
	found := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	w.Expect(found).NotTo(BeNil())
	w.Expect(found.Status).To(Equal(metav1.ConditionTrue))
	return found.LastTransitionTime.Time
}

// silenceCheck finds the samples' Machines unhealthy whose Nodes have been silent for that long.
func (w *world) silenceCheck(seconds int32) *clusterv1.MachineHealthCheck {
	return &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "silence"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: sandbox.SampleCluster,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineDeploymentNameLabel: sandbox.SampleDeployment}},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To(seconds)}}},
		},
	}
}
