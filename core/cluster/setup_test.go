package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestTheEndOfWhatNothingElseStandsFor: a Cluster that is being deleted waits for the deletion of an owner, or of what has none. One that
// has only the name of the owner, and may be of another Cluster, proves nothing.
func TestTheEndOfWhatNothingElseStandsFor(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	named := func(uid types.UID) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: uid}
	}
	deployment, set := &clusterv1.MachineDeployment{ObjectMeta: named("d")}, &clusterv1.MachineSet{ObjectMeta: named("s")}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(deployment, set).Build()}
	for name, test := range map[string]struct {
		kind string
		uid  types.UID
		want int
	}{
		"its MachineDeployment is there":         {"MachineDeployment", "d", 0},
		"its MachineSet is there":                {"MachineSet", "s", 0},
		"another MachineDeployment has the name": {"MachineDeployment", "past", 1},
		"another MachineSet has the name":        {"MachineSet", "past", 1},
		"it is of a control plane alone":         {"Plane", "p", 1},
		"nothing controls it":                    {"", "", 1},
	} {
		meta := metav1.ObjectMeta{Namespace: "ns", Name: "n"}
		if test.kind != "" {
			owner := &metav1.PartialObjectMetadata{ObjectMeta: named(test.uid)}
			meta.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind(test.kind))}
		}
		ended := []client.Object{
			&clusterv1.MachineSet{ObjectMeta: meta, Spec: clusterv1.MachineSetSpec{ClusterName: "c"}},
			&clusterv1.Machine{ObjectMeta: meta, Spec: clusterv1.MachineSpec{ClusterName: "c"}},
		}
		for _, object := range ended {
			g.Expect(r.clusterOfStandalone(t.Context(), object)).To(HaveLen(test.want), "%s: %T", name, object)
		}
	}
}
