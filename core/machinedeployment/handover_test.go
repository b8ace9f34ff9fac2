package machinedeployment

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/test/coretest/workers"
)

// TestNothingIsKeptOfADeploymentOfAnotherCore: should it come back, its progress was that core's meanwhile, and nothing here says that it
// has made none.
func TestNothingIsKeptOfADeploymentOfAnotherCore(t *testing.T) {
	g := NewWithT(t)
	theirs := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "d", UID: "u", Labels: map[string]string{clusterv1.WatchLabel: "theirs"},
	}}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(workers.Scheme()).WithObjects(theirs).Build(), WatchFilter: "ours"}
	r.progress.best = map[types.UID]progress{"u": {MachineSet: "s"}}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(theirs)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.progress.best).To(BeEmpty())
}
