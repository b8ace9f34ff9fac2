package machinedeployment

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/coretest/workers"
)

// nodeWith returns a Node of which Pods can use so much.
func nodeWith(memory string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{
		Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1930m"), corev1.ResourceMemory: resource.MustParse(memory),
			corev1.ResourceEphemeralStorage: resource.MustParse("18242267924"), corev1.ResourcePods: resource.MustParse("29"),
		}},
	}
}

func templateFrom(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	template := &unstructured.Unstructured{}
	text = "kind: T\nmetadata: {name: t, generation: 1}\nspec: {template: {spec: " + text + "}}"
	NewWithT(t).Expect(yaml.Unmarshal([]byte(text), &template.Object)).To(Succeed())
	return template
}

var (
	dedicated = corev1.Taint{Key: "example.com/dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule}
	starting  = corev1.Taint{Key: "node.cilium.io/agent-not-ready", Effect: corev1.TaintEffectNoExecute}
)

const cloudConfigSpec = `{kubelet: {nodeLabels: {example.com/pool: batch, b: ""},
  taints: [{key: example.com/dedicated, value: batch, effect: NoSchedule}, {key: node.cilium.io/agent-not-ready, effect: NoExecute}]}}`

// Taints, labels and maxPods that only the bootstrap template has are told before there is a Node, in the autoscaler's format.
func TestNextRecord_NoNode_HasTaintsLabelsAndPodsOfBootstrapTemplate(t *testing.T) {
	for name, test := range map[string]struct {
		template *unstructured.Unstructured
		want     map[string]string
	}{
		"CloudConfigTemplate": {templateFrom(t, cloudConfigSpec), map[string]string{
			labelsAnnotation: "b=,example.com/pool=batch",
			taintsAnnotation: "example.com/dedicated=batch:NoSchedule,node.cilium.io/agent-not-ready:NoExecute",
		}},
		"KubeadmConfigTemplate": {templateFrom(t, `{joinConfiguration: {nodeRegistration: {taints: [{key: gpu, value: "1", effect: NoSchedule}],
			kubeletExtraArgs: [{name: v, value: "2"}, {name: node-labels, value: "a=b,c=d=e"}]}}}`), map[string]string{
			labelsAnnotation: "a=b,c=d=e", taintsAnnotation: "gpu=1:NoSchedule",
		}},
		"maxPods": {templateFrom(t, `{kubelet: {config: {maxPods: 29}}}`), map[string]string{podsAnnotation: "29"}},
		"max-pods of kubeadm": {templateFrom(t, `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: "58"}]}}}`),
			map[string]string{podsAnnotation: "58"}},
		"maxPods that is left to the kubelet": {templateFrom(t, `{kubelet: {config: {maxPods: 0}}}`), map[string]string{}},
		"neither labels nor taints":           {templateFrom(t, `{kubelet: {}}`), map[string]string{}},
		"fields of other types":               {templateFrom(t, `{kubelet: {taints: x, nodeLabels: [y]}}`), map[string]string{}},
		"no bootstrap template":               {nil, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(groupRecord{}.next("t", test.template, nil).Values).To(Equal(test.want))
		})
	}
}

// What Pods can use of the least Node is told, and taints that have gone from it are not.
func TestNextRecord_KarpenterAWS7060_LearnsFromNodes(t *testing.T) {
	g := NewWithT(t)
	template := templateFrom(t, cloudConfigSpec)
	first := groupRecord{}.next("t", template, []*corev1.Node{nodeWith("7000Mi", dedicated), nodeWith("6990Mi", dedicated, starting)})
	g.Expect(first).To(Equal(groupRecord{Templates: "t", Learned: true, Values: map[string]string{
		cpuAnnotation: "1930m", memoryAnnotation: "6990Mi", diskAnnotation: "18242267924", podsAnnotation: "29",
		labelsAnnotation: "b=,example.com/pool=batch", taintsAnnotation: "example.com/dedicated=batch:NoSchedule",
	}}))
	g.Expect(first.next("t", template, nil)).To(Equal(first), "what was learned stays when the group has no Node")
	g.Expect(first.next("other", template, nil).Values).NotTo(HaveKey(memoryAnnotation), "of other templates nothing is known")
	memoryAfter := func(memory string) string {
		return first.next("t", template, []*corev1.Node{nodeWith(memory)}).Values[memoryAnnotation]
	}
	g.Expect(memoryAfter("7000Mi")).To(Equal("6990Mi"), "Nodes of a type differ by some KiB")
	g.Expect(memoryAfter("6989Mi")).To(Equal("6989Mi"))
	g.Expect(memoryAfter("8000Mi")).To(Equal("8000Mi"))
	bare := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0")}}}
	g.Expect(groupRecord{}.next("t", nil, []*corev1.Node{bare}).Values).To(BeEmpty(), "a Node that does not report it yet")
}

// Annotations of users are neither overwritten nor removed, whenever they are set.
func TestReplaceRecord_AnnotationOfUser_Stays(t *testing.T) {
	g := NewWithT(t)
	user := map[string]string{cpuAnnotation: "3", "other": "x"}
	next := groupRecord{Templates: "t", Values: map[string]string{cpuAnnotation: "2", memoryAnnotation: "1Gi"}}
	written := groupRecord{}.replace(user, next)
	g.Expect(written).To(Equal(map[string]string{
		cpuAnnotation: "3", memoryAnnotation: "1Gi", "other": "x",
		AutoscalerAnnotation: `{"templates":"t","values":{"` + memoryAnnotation + `":"1Gi"}}`,
	}))
	record := recordOf(&clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: written}})
	g.Expect(record.replace(written, next)).To(Equal(written), "nothing changes the second time")
	written[memoryAnnotation] = "2Gi"
	g.Expect(record.replace(written, groupRecord{})).To(Equal(map[string]string{
		cpuAnnotation: "3", memoryAnnotation: "2Gi", "other": "x",
	}))
	g.Expect(groupRecord{}.replace(nil, groupRecord{})).To(BeEmpty())
	broken := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AutoscalerAnnotation: "{"}}}
	g.Expect(recordOf(broken)).To(Equal(groupRecord{}))
}

// A group of zero Nodes has the taints and labels of its CloudConfigTemplate, learns the rest from its first Node, and keeps it.
// A deployment without limits has none of it.
func TestTellAutoscaler_Autoscaler1869_LearnsFromFirstNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change = func(r *Reconciler) {
		r.Node = func(types.NamespacedName, string) *corev1.Node { return nodeWith("7000Mi", dedicated) }
	}
	template := w.Template(workers.ConfigTemplateKind, "c")
	template.Object["spec"] = templateFrom(t, cloudConfigSpec).Object["spec"]
	w.Create(template)
	w.deployment(0, func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "0", clusterv1.AutoscalerMaxSizeAnnotation: "9"}
		d.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "c"
	})
	w.start(t)
	annotations := func() map[string]string { return w.current().Annotations }
	w.Eventually(func(g Gomega) {
		g.Expect(annotations()).To(HaveKeyWithValue(taintsAnnotation, formatTaints([]corev1.Taint{dedicated, starting})))
		g.Expect(annotations()).NotTo(HaveKey(memoryAnnotation))
	})
	learned := func(replicas int32) func(Gomega) {
		return func(g Gomega) {
			g.Expect(ptr.Deref(w.current().Status.Replicas, -1)).To(Equal(replicas))
			g.Expect(annotations()).To(And(
				HaveKeyWithValue(memoryAnnotation, "7000Mi"), HaveKeyWithValue(diskAnnotation, "18242267924"),
				HaveKeyWithValue(podsAnnotation, "29"), HaveKeyWithValue(taintsAnnotation, formatTaints([]corev1.Taint{dedicated}))))
		}
	}
	for _, replicas := range []int32{1, 0} {
		w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = ptr.To(replicas) })
		w.Eventually(learned(replicas))
	}
	w.update(func(d *clusterv1.MachineDeployment) { delete(d.Annotations, clusterv1.AutoscalerMaxSizeAnnotation) })
	w.Eventually(func(g Gomega) {
		g.Expect(annotations()).NotTo(Or(
			HaveKey(memoryAnnotation), HaveKey(taintsAnnotation), HaveKey(AutoscalerAnnotation)))
	})
}
