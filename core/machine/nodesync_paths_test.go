package machine_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

const poolLabel = "node.cluster.x-k8s.io/pool"

// patchNode changes a Node as a controller other than the core.
func (f *fixture) patchNode(node *corev1.Node, change func(*corev1.Node)) {
	f.t.Helper()
	f.Eventually(func() error {
		f.refresh(node)
		before := node.DeepCopy()
		for _, entries := range []*map[string]string{&node.Labels, &node.Annotations} {
			if *entries == nil {
				*entries = map[string]string{}
			}
		}
		change(node)
		return core.Client.Patch(f.t.Context(), node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}).WithTimeout(timeout).Should(Succeed())
}

// eventuallyNode waits until the Node matches.
func (f *fixture) eventuallyNode(name string, check func(Gomega, *corev1.Node)) {
	f.t.Helper()
	f.Eventually(func(g Gomega) {
		node := &corev1.Node{}
		g.Expect(core.Client.Get(f.t.Context(), client.ObjectKey{Name: name}, node)).To(Succeed())
		check(g, node)
	}).WithTimeout(timeout).Should(Succeed())
}

// TestSyncNode_OnInitializationTaints_AreSetOnce: once they have had their turn they are the Node's own.
func TestSyncNode_OnInitializationTaints_AreSetOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Taints = []clusterv1.MachineTaint{
		{Key: "example.com/once", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationOnInitialization},
	}
	node := f.run()
	once := ContainElement(HaveField("Key", "example.com/once"))
	f.eventuallyNode(node.Name, func(g Gomega, n *corev1.Node) { g.Expect(n.Spec.Taints).To(once) })
	f.awaitsNothing()
	f.patchNode(node, func(n *corev1.Node) { n.Spec.Taints = nil })
	f.patchMachine(func(m *clusterv1.Machine) { m.Labels[poolLabel] = "a" })
	f.eventuallyNode(node.Name, func(g Gomega, n *corev1.Node) {
		g.Expect(n.Labels).To(HaveKey(poolLabel))
		g.Expect(n.Spec.Taints).NotTo(once)
	})
}

// TestSyncNode_FirstTime_IsOnePatch: whether the Node comes before or after the provider ID.
func TestSyncNode_FirstTime_IsOnePatch(t *testing.T) {
	for name, early := range map[string]bool{"the Node comes first": true, "the provider ID comes first": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, version.V1Beta2)
			f.machine.Spec.Taints = []clusterv1.MachineTaint{
				{Key: "example.com/always", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways},
			}
			requests := f.counted()
			f.createOwned()
			f.patchMachine(func(m *clusterv1.Machine) { m.Labels[poolLabel] = "a" })
			core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "data"))
			f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.Phase).To(Equal("Provisioning")) })
			join := func() {
				node := core.Node(t, f.machine.Name, f.providerID(), true)
				f.eventuallyCached(node.Name)
			}
			if early {
				join()
			}
			f.provision()
			f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Spec.ProviderID).NotTo(BeEmpty()) })
			if !early {
				f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.Phase).To(Equal("Provisioned")) })
				join()
			}
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "Available")).To(HavePrefix("True/"))
			})
			f.awaitsNothing()
			writes := map[string]int{}
			for _, request := range core.Requests.Writes("/" + f.machine.Name) {
				// A core that has not read its own last write yet, and is refused, begins again; TestBudget limits that to none.
				if request.Status == http.StatusOK {
					writes[kindOf(request.Path)]++
				}
			}
			f.Expect(writes["machines"]).
				To(Equal(2), "the name of the Secret, and the provider ID: %v", core.Requests.Writes("/"+f.machine.Name))
			patches := 0
			for _, request := range requests.Writes("/nodes/" + f.machine.Name) {
				// The kubelet writes too, and who loses that race begins again.
				if request.Verb == http.MethodPatch && request.Status == http.StatusOK {
					patches++
				}
			}
			f.Expect(patches).To(Equal(1))
		})
	}
}
