package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// TestRestartWritesNothing: a core that starts again finds everything as it should be, and leaves it so.
func TestRestartWritesNothing(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.awaitsNothing()
	f.refresh(f.machine)
	f.refresh(node)
	writes, reconciles := len(core.Requests.Writes("/"+f.machine.Name)), core.Reconciles(f.namespace)

	core.Restart(t)

	f.Eventually(func() int { return core.Reconciles(f.namespace) - reconciles }).WithTimeout(timeout).Should(BeNumerically(">", 0))
	f.eventuallyConnected()
	f.awaitsNothing()
	f.Expect(core.Requests.Writes("/" + f.machine.Name)[writes:]).To(BeEmpty())
	machine, before := &clusterv1.Machine{}, f.machine.ResourceVersion
	f.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(f.machine), machine)).To(Succeed())
	f.Expect(machine.ResourceVersion).To(Equal(before))
	again := &corev1.Node{}
	f.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(node), again)).To(Succeed())
	f.Expect(again.ResourceVersion).To(Equal(node.ResourceVersion))
}

// TestRestartWithSlowLists: the Node has every mark that a Machine, its infrastructure and its owners give it. Whichever kind
// a new core has read last, it takes none of them away, and writes to neither Machine nor Node before or after.
func TestRestartWithSlowLists(t *testing.T) {
	core.MortalTarget(t)
	f := newFixture(t, version.V1Beta2)
	node := f.runWithAllMarks()
	t.Cleanup(func() { core.Restart(t) })
	for _, slow := range [][]string{
		{pluralOf(coretest.Machine)}, {pluralOf(coretest.Config)}, {"machinesets", "machinedeployments"}, {"nodes"},
		{"machines", "clusters", "customresourcedefinitions"},
	} {
		t.Run(strings.Join(slow, ","), func(t *testing.T) {
			g := NewWithT(t)
			writes := len(core.Requests.Writes("/" + f.machine.Name))
			unchanged := func(g Gomega) {
				g.Expect(core.Requests.Writes("/" + f.machine.Name)[writes:]).To(BeEmpty())
				machine, again := &clusterv1.Machine{}, &corev1.Node{}
				g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(f.machine), machine)).To(Succeed())
				g.Expect(machine.ResourceVersion).To(Equal(f.machine.ResourceVersion))
				g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(node), again)).To(Succeed())
				g.Expect(again.ResourceVersion).To(Equal(node.ResourceVersion), "%v", again.ObjectMeta)
			}
			list := core.SlowLists(t, slow...)
			core.Restart(t)
			g.Eventually(list.Held).WithTimeout(timeout).Should(BeNumerically(">", 0), "the list is wanted")
			// Less than the time after which a list counts as overdue, which conditions report.
			g.Consistently(unchanged).WithTimeout(quiet).WithPolling(200*time.Millisecond).Should(Succeed(), "while the list is on its way")
			before := core.Reconciles(f.namespace)
			list.Open()
			f.eventuallyConnected()
			g.Eventually(func() int { return core.Reconciles(f.namespace) - before }).WithTimeout(timeout).Should(BeNumerically(">", 0))
			f.awaitsNothing()
			unchanged(g)
		})
	}
}

// runWithAllMarks brings a Machine to Running whose Node has all that is synchronized: labels and annotations of the Machine,
// the label interruptible, a taint of the Machine, and the marks of an outdated revision. A taint for the initialization has had
// its turn.
func (f *fixture) runWithAllMarks() *corev1.Node {
	f.t.Helper()
	f.machine.Spec.Taints = []clusterv1.MachineTaint{
		{Key: "example.com/always", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways},
		{Key: "example.com/once", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationOnInitialization},
	}
	node := f.run()
	f.removeTaint(node, "example.com/once")
	core.SetStatus(f.t, f.infra, map[string]any{"interruptible": true})
	deployment, _ := f.deployment()
	f.annotate(deployment, clusterv1.RevisionAnnotation, ptr.To("2"))
	f.patchMachine(func(m *clusterv1.Machine) {
		m.Labels["node.cluster.x-k8s.io/pool"] = "a"
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, "node.cluster.x-k8s.io/note", "b")
	})
	f.Eventually(func(g Gomega) {
		f.refresh(node)
		g.Expect(node.Labels).To(And(HaveKey(clusterv1.InterruptibleLabel), HaveKeyWithValue("node.cluster.x-k8s.io/pool", "a")))
		g.Expect(node.Annotations).To(And(HaveKeyWithValue("node.cluster.x-k8s.io/note", "b"), HaveKeyWithValue(scaleDownDisabled, "true")))
		g.Expect(node.Spec.Taints).
			To(ContainElements(HaveField("Key", "example.com/always"), HaveField("Key", clusterv1.NodeOutdatedRevisionTaint.Key)))
	}).WithTimeout(timeout).Should(Succeed())
	f.awaitsNothing()
	f.refresh(f.machine)
	f.refresh(node)
	return node
}

// removeTaint waits until the Node has a taint, and removes it, as the component does that it waits for.
func (f *fixture) removeTaint(node *corev1.Node, key string) {
	f.t.Helper()
	f.Eventually(func(g Gomega) {
		f.refresh(node)
		g.Expect(node.Spec.Taints).To(ContainElement(HaveField("Key", key)))
		before := node.DeepCopy()
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key })
		g.Expect(core.Client.Patch(f.t.Context(), node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).To(Succeed())
	}).WithTimeout(timeout).Should(Succeed())
}

// pluralOf is the name of the resource of stand-in objects.
func pluralOf(role string) string {
	return coretest.CRD(coretest.Kind(role, version.V1Beta2), version.V1Beta2).Spec.Names.Plural
}

// TestDrainSurvivesARestart: what a drain has reached is in the cluster, not in the process.
func TestDrainSurvivesARestart(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	pod := f.pod("held", node.Name)
	f.setFinalizers(pod, providerFinalizer)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(message(m, "Deleting")).To(ContainSubstring("held")) })
	f.refresh(f.machine)
	started := f.machine.Status.Deletion.NodeDrainStartTime

	core.Restart(t)

	f.eventuallyConnected()
	f.refresh(f.infra)
	f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil(), "the machine is kept while the pod is there")
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Deletion.NodeDrainStartTime.Equal(&started)).To(BeTrue(), "the timeout is not reset")
	})
	f.setFinalizers(pod)
	f.eventuallyGone(f.machine)
	f.eventuallyGone(node)
}

// TestTargetOutOfReach: a Machine waits for a target cluster that does not answer, and reports it.
func TestTargetOutOfReach(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	key := client.ObjectKey{Namespace: f.namespace, Name: "c"}
	core.Connections.Remove(key)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/DrainingNode"))
		g.Expect(message(m, "Deleting")).To(HavePrefix("Waiting for the connection to the target cluster"))
	})
	f.refresh(f.infra)
	f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil())

	core.Connections.Ensure(t.Context(), key)
	f.eventuallyGone(f.machine)
	f.eventuallyGone(node)
}
