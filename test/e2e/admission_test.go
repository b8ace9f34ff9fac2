package e2e

import (
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// expectAdmission shows that the core's webhooks work: what is invalid is refused, and clients of v1beta1 read
// the Machines.
func (w *world) expectAdmission() {
	w.t.Helper()
	invalid := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "invalid"},
		Spec:       *w.machines()[0].Spec.DeepCopy(),
	}
	invalid.Spec.Version = "latest"
	w.Expect(w.control.Create(w.ctx, invalid)).To(MatchError(ContainSubstring("is not a semantic version")))

	old := &unstructured.UnstructuredList{}
	old.SetAPIVersion("cluster.x-k8s.io/v1beta1")
	old.SetKind("MachineList")
	w.Expect(w.control.List(w.ctx, old, client.InNamespace(w.namespace))).To(Succeed())
	w.Expect(old.Items).To(HaveLen(len(w.machines())))
	for _, machine := range old.Items {
		version, _, err := unstructured.NestedString(machine.Object, "spec", "infrastructureRef", "apiVersion")
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(version).To(Equal("infrastructure.millwright.dev/v1alpha1"), "v1beta2 names no version here")
	}
}
