package machine_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/contracts/version"
	"millwright.dev/core/machine"
	"millwright.dev/test/coretest"
)

const scaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"

// counted has the core reach the target cluster through a proxy that counts its requests.
func (f *fixture) counted() *coretest.Requests {
	f.t.Helper()
	requests := &coretest.Requests{}
	proxy, err := requests.Proxy(core.Env.Config)
	f.Expect(err).NotTo(HaveOccurred())
	f.t.Cleanup(func() {
		// The connection is ended, so that no other test is disturbed by its loss.
		key := client.ObjectKey{Namespace: f.namespace, Name: "c"}
		core.Connections.Remove(key)
		proxy.CloseClientConnections()
		proxy.Close()
	})
	f.rotate(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":"%s"}}]}`, proxy.URL))
	f.Eventually(func() bool {
		connection, err := core.Connections.Get(client.ObjectKey{Namespace: f.namespace, Name: "c"})
		return err == nil && connection.Config.Host == proxy.URL
	}).WithTimeout(timeout).Should(BeTrue(), "a rotated kubeconfig is used at once")
	return requests
}

// rotate writes another kubeconfig into the Secret of the Cluster.
func (f *fixture) rotate(content []byte) {
	f.t.Helper()
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = f.namespace, shared.SecretName("c")
	f.refresh(secret)
	secret.Data = map[string][]byte{"value": content}
	f.Expect(core.Client.Update(f.t.Context(), secret)).To(Succeed())
}

// nodePatches counts the patches that a Node got from the core.
func nodePatches(requests *coretest.Requests, node string) int {
	patches := 0
	for _, request := range requests.Writes("/nodes/" + node) {
		if request.Verb == "PATCH" {
			patches++
		}
	}
	return patches
}

// deployment puts the fixture's MachineSet under a MachineDeployment of the first revision.
func (f *fixture) deployment() (*clusterv1.MachineDeployment, *clusterv1.MachineSet) {
	f.t.Helper()
	set := &clusterv1.MachineSet{}
	set.Namespace, set.Name = f.namespace, "s"
	f.refresh(set)
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "d", Annotations: map[string]string{clusterv1.RevisionAnnotation: "1"}},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "c", Replicas: ptr.To[int32](0), Selector: set.Spec.Selector, Template: set.Spec.Template,
		},
	}
	core.Create(f.t, deployment)
	before := set.DeepCopy()
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, clusterv1.GroupVersion.WithKind("MachineDeployment"))}
	set.Annotations = map[string]string{clusterv1.RevisionAnnotation: "1"}
	f.Expect(core.Client.Patch(f.t.Context(), set, client.MergeFrom(before))).To(Succeed())
	f.refresh(f.machine)
	machine := f.machine.DeepCopy()
	f.machine.Labels[clusterv1.MachineDeploymentNameLabel] = deployment.Name
	f.Expect(core.Client.Patch(f.t.Context(), f.machine, client.MergeFrom(machine))).To(Succeed())
	return deployment, set
}

// TestOutdatedRevisionOnTheNode: while a rollout has a newer revision, the Node is marked, by one patch; when the old
// revision becomes the present one again, both marks are taken back, by one patch.
func TestOutdatedRevisionOnTheNode(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	requests := f.counted()
	node := f.run()
	deployment, set := f.deployment()
	f.awaitsNothing()
	patches := nodePatches(requests, node.Name)
	outdated := ContainElement(
		And(HaveField("Key", clusterv1.NodeOutdatedRevisionTaint.Key), HaveField("Effect", corev1.TaintEffectPreferNoSchedule)),
	)

	f.annotate(deployment, clusterv1.RevisionAnnotation, ptr.To("2"))
	f.Eventually(func(g Gomega) {
		f.refresh(node)
		g.Expect(node.Spec.Taints).To(outdated)
		g.Expect(node.Annotations).To(HaveKeyWithValue(scaleDownDisabled, "true"))
		g.Expect(node.Annotations).To(HaveKey(machine.ScaleDownDisabledMarkerAnnotation))
	}).WithTimeout(timeout).Should(Succeed())
	f.awaitsNothing()
	f.Expect(nodePatches(requests, node.Name)).To(Equal(patches+1), "taint and annotation come together")

	f.annotate(set, clusterv1.RevisionAnnotation, ptr.To("3"))
	f.Eventually(func(g Gomega) {
		f.refresh(node)
		g.Expect(node.Spec.Taints).NotTo(outdated)
		g.Expect(node.Annotations).NotTo(HaveKey(scaleDownDisabled))
		g.Expect(node.Annotations).NotTo(HaveKey(machine.ScaleDownDisabledMarkerAnnotation))
	}).WithTimeout(timeout).Should(Succeed())
	f.awaitsNothing()
	f.Expect(nodePatches(requests, node.Name)).To(Equal(patches+2), "and go together")
}

// TestOwnersEnqueueNothingWithoutNeed: the status of a MachineSet or MachineDeployment changes with each of its Machines;
// upstream's core reconciles all the others each time.
func TestOwnersEnqueueNothingWithoutNeed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createOwned()
	deployment, set := f.deployment()
	replicas := int32(0)
	f.enqueuesNothing(func() {
		for range 5 {
			replicas++
			set.Status.Replicas = ptr.To(replicas)
			f.Expect(core.Client.Status().Update(t.Context(), set)).To(Succeed())
			f.refresh(deployment)
			deployment.Spec.Replicas = ptr.To(replicas)
			f.Expect(core.Client.Update(t.Context(), deployment)).To(Succeed())
		}
	})
	before := core.Reconciles(f.namespace)
	f.annotate(deployment, clusterv1.RevisionAnnotation, ptr.To("2"))
	f.Eventually(func() int { return core.Reconciles(f.namespace) - before }).WithTimeout(timeout).Should(BeNumerically(">", 0))
}

// TestTaintsOfTheMachine: Always taints follow the Machine, OnInitialization taints come once and are then the Node's own.
func TestTaintsOfTheMachine(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Taints = []clusterv1.MachineTaint{
		{Key: "example.com/always", Value: "1", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways},
		{Key: "example.com/once", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationOnInitialization},
	}
	requests := f.counted()
	node := f.run()
	keys := func() (keys []string) {
		f.refresh(node)
		for _, taint := range node.Spec.Taints {
			keys = append(keys, taint.Key)
		}
		return keys
	}
	f.Expect(keys()).To(ContainElements("example.com/always", "example.com/once"))
	f.Expect(keys()).NotTo(ContainElement(clusterv1.NodeUninitializedTaint.Key))
	f.awaitsNothing()
	f.Expect(nodePatches(requests, node.Name)).To(Equal(1), "all that the Node gets comes by one patch")

	before := node.DeepCopy()
	node.Spec.Taints = []corev1.Taint{{Key: "example.com/foreign", Effect: corev1.TaintEffectNoSchedule}}
	f.Expect(core.Client.Patch(t.Context(), node, client.MergeFrom(before))).To(Succeed())
	f.Eventually(keys).WithTimeout(timeout).Should(ContainElements("example.com/foreign", "example.com/always"))
	f.Expect(keys()).NotTo(ContainElement("example.com/once"))

	f.refresh(f.machine)
	machine := f.machine.DeepCopy()
	f.machine.Spec.Taints = nil
	f.Expect(core.Client.Patch(t.Context(), f.machine, client.MergeFrom(machine))).To(Succeed())
	f.Eventually(keys).WithTimeout(timeout).ShouldNot(ContainElement("example.com/always"))
	f.Expect(keys()).To(ContainElement("example.com/foreign"))
}
