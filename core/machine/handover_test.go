package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1 "k8s.io/api/policy/v1"

	"millwright.dev/contracts/version"
)

// label sets the watch label of an object.
func (f *fixture) label(obj client.Object, value string) {
	f.t.Helper()
	f.refresh(obj)
	before := obj.DeepCopyObject().(client.Object)
	obj.SetLabels(map[string]string{clusterv1.WatchLabel: value, clusterv1.ClusterNameLabel: "c"})
	f.Expect(core.Client.Patch(f.t.Context(), obj, client.MergeFrom(before))).To(Succeed())
}

// TestADrainEndsWhenAnotherCoreTakesOver: the Machine, or its Cluster alone, is relabelled for another core while its Node is
// drained. This core evicts nothing any more, and has no connection to a Cluster that is the other core's.
func TestADrainEndsWhenAnotherCoreTakesOver(t *testing.T) {
	core.WatchFilter = "mine"
	core.Restart(t)
	t.Cleanup(func() { core.WatchFilter = ""; core.Restart(t) })
	for _, alone := range []bool{false, true} {
		t.Run(map[bool]string{false: "Machine", true: "Cluster"}[alone], func(t *testing.T) {
			base := newFixture(t, version.V1Beta2)
			cluster := base.cluster()
			base.label(cluster, "mine")
			base.eventuallyConnected()
			f := base.beside("m")
			f.machine.Labels = map[string]string{clusterv1.WatchLabel: "mine"}
			node, pod := f.beginsDrain()
			key := client.ObjectKeyFromObject(cluster)
			disconnected := func() {
				f.label(cluster, "other")
				f.Eventually(func() error { _, err := core.Connections.Get(key); return err }).WithTimeout(timeout).ShouldNot(Succeed())
			}
			if alone {
				disconnected()
				f.eventually(func(g Gomega, m *clusterv1.Machine) {
					g.Expect(message(m, "Deleting")).To(ContainSubstring("Cluster c is labelled for another core"))
				})
			} else {
				f.label(f.machine, "other")
			}
			f.awaitsNothing()
			f.evictsNothing(pod)
			if !alone {
				disconnected()
			}
			f.label(cluster, "mine")
			f.eventuallyConnected()
			if !alone {
				f.label(f.machine, "mine")
			}
			f.eventuallyGone(f.machine)
			f.eventuallyGone(node)
		})
	}
}

// beginsDrain deletes the Machine and waits until its drain waits for a budget.
func (f *fixture) beginsDrain() (*corev1.Node, *corev1.Pod) {
	f.t.Helper()
	f.createMachine()
	f.provisionAs(f.providerID())
	node := core.Node(f.t, f.machine.Name, f.providerID(), true)
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name)) })
	pod := f.heldPod(node.Name)
	f.Expect(core.Client.Delete(f.t.Context(), f.machine)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(message(m, "Deleting")).To(ContainSubstring("budget")) })
	return node, pod
}

// evictsNothing takes the budget away and sees that the pod stays, for longer than a drain takes to try an eviction again in these
// tests.
func (f *fixture) evictsNothing(pod *corev1.Pod) {
	f.t.Helper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "budget"}}
	f.Expect(core.Client.Delete(f.t.Context(), budget)).To(Succeed())
	f.Consistently(func() *metav1.Time {
		f.Expect(client.IgnoreNotFound(core.Client.Get(f.t.Context(), client.ObjectKeyFromObject(pod), pod))).To(Succeed())
		return pod.DeletionTimestamp
	}).WithTimeout(quiet).Should(BeNil(), "the drain of this core has ended")
	f.Expect(core.Client.Get(f.t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})).To(Succeed())
}
