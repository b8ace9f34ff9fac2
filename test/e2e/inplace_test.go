package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestInPlace changes what reaches existing Machines: labels, annotations, timeouts and taints. None is replaced.
// Then another infrastructure template replaces all.
func TestInPlace(t *testing.T) {
	w := manyWorld(t, &rolling, "in-place")
	w.start(2)
	first := w.identities()
	taints := func(list ...clusterv1.MachineTaint) {
		w.t.Helper()
		w.change(func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.Taints = list })
	}
	always, once, added := taint("always", clusterv1.MachineTaintPropagationAlways),
		taint("once", clusterv1.MachineTaintPropagationOnInitialization), taint("added", clusterv1.MachineTaintPropagationAlways)

	w.change(func(md *clusterv1.MachineDeployment) {
		md.Spec.Template.Labels["node.cluster.x-k8s.io/changed"] = "label"
		md.Spec.Template.Annotations = map[string]string{"example.com/changed": "annotation"}
		md.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](42)
		md.Spec.Template.Spec.MinReadySeconds = ptr.To[int32](1)
	})
	w.Eventually(func(g Gomega) {
		for _, m := range w.machines() {
			g.Expect(m.Annotations).To(HaveKeyWithValue("example.com/changed", "annotation"))
			g.Expect(m.Spec.Deletion.NodeDrainTimeoutSeconds).To(HaveValue(BeEquivalentTo(42)))
			g.Expect(m.Spec.MinReadySeconds).To(HaveValue(BeEquivalentTo(1)))
			g.Expect(w.nodes()[m.Status.NodeRef.Name].Labels).To(HaveKeyWithValue("node.cluster.x-k8s.io/changed", "label"))
		}
	}).Should(Succeed())

	taints(always, once)
	w.expectTaints("always")
	taints(always, once, added)
	w.expectTaints("always", "added")
	for _, machine := range w.machines() {
		w.dropTaints(machine.Status.NodeRef.Name)
	}
	w.expectTaints("always", "added")
	taints(added)
	w.expectTaints("added")
	taints()
	w.expectTaints()
	w.Expect(w.identities()).To(Equal(first), "nothing of this replaces a machine")

	taints(always, once)
	old := w.scenario.Watch.UIDs()
	w.Expect(w.scenario.Roll(w.ctx)).To(Succeed())
	w.Expect(w.scenario.AwaitRolled(w.ctx, old, 2)).To(Succeed())
	w.expectTaints("always", "once")
	w.expectDeployment(2)
}

func taint(key string, propagation clusterv1.MachineTaintPropagation) clusterv1.MachineTaint {
	return clusterv1.MachineTaint{Key: "example.com/" + key, Value: "v", Effect: corev1.TaintEffectPreferNoSchedule, Propagation: propagation}
}

// expectTaints waits until the Nodes have these taints of the test and no others.
func (w *world) expectTaints(names ...string) {
	w.t.Helper()
	want := []string{}
	for _, name := range names {
		want = append(want, "example.com/"+name)
	}
	w.Eventually(func(g Gomega) {
		for _, m := range w.machines() {
			found := []string{}
			for _, taint := range w.nodes()[m.Status.NodeRef.Name].Spec.Taints {
				if taint.Value == "v" {
					found = append(found, taint.Key)
				}
			}
			g.Expect(found).To(ConsistOf(want))
		}
	}).Should(Succeed())
}

// dropTaints removes all taints of a Node manually.
func (w *world) dropTaints(name string) {
	w.t.Helper()
	node := w.nodes()[name]
	untainted := node.DeepCopy()
	untainted.Spec.Taints = nil
	w.Expect(w.target.Patch(w.ctx, untainted, client.MergeFrom(node))).To(Succeed())
}
