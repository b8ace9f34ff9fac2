package machine

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/remote"
)

// TestANodeThatNamesAMachineOfAClusterOutOfReach: what is written on a Node decides whether Machines compete only while the
// Cluster of the other one is not connected, and never within a Cluster.
func TestANodeThatNamesAMachineOfAClusterOutOfReach(t *testing.T) {
	g := NewWithT(t)
	machine := func(namespace, cluster string) *clusterv1.Machine {
		return &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"},
			Spec:       clusterv1.MachineSpec{ClusterName: cluster},
		}
	}
	node := func(namespace, cluster, name string) []*corev1.Node {
		return []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{
			clusterv1.ClusterNamespaceAnnotation: namespace, clusterv1.ClusterNameAnnotation: cluster, clusterv1.MachineAnnotation: name,
		}}}}
	}
	r := &Reconciler{Connections: remote.New(shared.Options{Scheme: runtime.NewScheme()})}
	mine := machine("ns", "c")
	s := &scope{Base: base{Original: mine, Object: mine}}
	g.Expect(r.sameTarget(s, machine("other", "c"), node("other", "c", "m"))).To(BeTrue(), "it was written for that Machine")
	for _, lie := range [][]*corev1.Node{node("other", "c", "x"), node("other", "d", "m"), node("ns", "c", "m"), nil} {
		g.Expect(r.sameTarget(s, machine("other", "c"), lie)).To(BeFalse())
		g.Expect(r.sameTarget(s, machine("ns", "c"), lie)).To(BeTrue(), "Machines of one Cluster always compete")
	}
}
