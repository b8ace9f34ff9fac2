package trim_test

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/trim"
)

// again is a text of its own with the same content, as decoding makes it.
func again(text string) string { return strings.Clone(text) }

func machine(name string) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: again("ns"), Name: again(name), Labels: map[string]string{again("cluster.x-k8s.io/cluster-name"): again("c")},
			Annotations:     map[string]string{again("a"): again("v")},
			OwnerReferences: []metav1.OwnerReference{{Kind: again("MachineSet"), Name: again("set"), UID: "u"}},
			Finalizers:      []string{again(clusterv1.MachineFinalizer)},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName:       again("c"),
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: again("Thing"), Name: again(name)},
		},
		Status: clusterv1.MachineStatus{
			NodeInfo:   &corev1.NodeSystemInfo{KubeletVersion: again("v1.36.3"), MachineID: again(name)},
			Conditions: []metav1.Condition{{Type: again("Ready"), Status: "True", Reason: again("Ready"), Message: again("all is well")}},
		},
	}
	m.Spec.Bootstrap.DataSecretName = ptr.To(again(name))
	return m
}

func TestMachine(t *testing.T) {
	g := NewWithT(t)
	a, b := machine("a"), machine("b")
	a.Status.Conditions = append(make([]metav1.Condition, 0, 16), a.Status.Conditions...)
	a.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	trim.Machine(a)
	trim.Machine(b)
	g.Expect(a).To(Equal(machine("a")), "but for managed fields nothing is lost")
	g.Expect(a.Status.Conditions).To(HaveCap(1))
	same := func(x, y string) bool { return unsafe.StringData(x) == unsafe.StringData(y) }
	g.Expect(same(a.Spec.ClusterName, b.Spec.ClusterName)).To(BeTrue())
	g.Expect(same(a.Labels[clusterv1.ClusterNameLabel], b.Labels[clusterv1.ClusterNameLabel])).To(BeTrue())
	g.Expect(same(a.Status.Conditions[0].Reason, b.Status.Conditions[0].Reason)).To(BeTrue())
	g.Expect(same(*a.Spec.Bootstrap.DataSecretName, a.Name)).To(BeTrue())
}

func TestEmpty(t *testing.T) {
	g := NewWithT(t)
	m, n := &clusterv1.Machine{}, &corev1.Node{}
	trim.Machine(m)
	trim.Node(n)
	g.Expect(m).To(Equal(&clusterv1.Machine{}))
	g.Expect(n).To(Equal(&corev1.Node{}))
}

func TestText(t *testing.T) {
	g := NewWithT(t)
	for i := range 20000 {
		text := fmt.Sprintf("text %d", i)
		g.Expect(trim.Text(text)).To(Equal(text), "also when there are more than are remembered")
	}
	long := strings.Repeat("x", 1000)
	g.Expect(trim.Text(long)).To(Equal(long))
}

func TestMap(t *testing.T) {
	g := NewWithT(t)
	for i := range 20000 {
		want := map[string]string{"a": "1", "b": fmt.Sprint(i)}
		g.Expect(trim.Map(want)).To(Equal(want))
	}
	g.Expect(trim.Map(map[string]string{"a": "b", "c": ""})).NotTo(Equal(trim.Map(map[string]string{"a": "", "b": "c"})))
	for _, tricky := range []map[string]string{{"a": "b", "c": "d"}, {"a": "b1:c1:d"}, {"a": "b\x00c\x00d"}} {
		g.Expect(trim.Map(tricky)).To(Equal(tricky))
	}
	long := map[string]string{"a": strings.Repeat("x", 1000)}
	g.Expect(trim.Map(long)).To(Equal(long))
}

func TestObject(t *testing.T) {
	g := NewWithT(t)
	for _, values := range []map[string]any{{"a": "t"}, {"a": true}, {"a": false}, {"a": "f", "b": ""}} {
		one, ok := trim.Object(values)
		g.Expect(ok).To(BeTrue())
		g.Expect(one).To(Equal(values))
	}
	for _, values := range []map[string]any{{}, {"a": int64(1)}, {"a": nil}, {"a": map[string]any{}}, {"a": []any{}}} {
		_, ok := trim.Object(values)
		g.Expect(ok).To(BeFalse())
	}
}

func TestTransform(t *testing.T) {
	g := NewWithT(t)
	transform := trim.Transform(func(*unstructured.Unstructured) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "trimmed"}}
	})
	for _, obj := range []metav1.Object{machine("a"), &corev1.Node{}, &metav1.PartialObjectMetadata{}} {
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
		out, err := transform(obj)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out.(metav1.Object).GetManagedFields()).To(BeEmpty())
	}
	g.Expect(transform(&unstructured.Unstructured{})).To(HaveField("Object", HaveKeyWithValue("kind", "trimmed")))
}
