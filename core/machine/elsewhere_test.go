package machine

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/drain"
	"millwright.dev/core/remote"
)

// TestNothingIsRememberedOfAMachineOfAnotherCore: a Machine that is relabelled for another core may never be seen again by this
// one, so what was remembered of it goes at once.
func TestNothingIsRememberedOfAMachineOfAnotherCore(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	m := &clusterv1.Machine{}
	m.Namespace, m.Name, m.UID, m.Spec.ClusterName = "ns", "m", "u", "c"
	m.Labels = map[string]string{clusterv1.WatchLabel: "other"}
	connections, drainer := remote.New(shared.Options{Scheme: scheme}), drain.New(drain.Options{})
	t.Cleanup(connections.Close)
	t.Cleanup(drainer.Close)
	r := &Reconciler{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(m).Build(), Connections: connections, drainer: drainer,
		WatchFilter: "mine",
	}
	key := (&scope{Base: base{Original: m}}).Key()
	r.drains.remember(key, finishedDrain{})
	r.observations.add(key, m.UID, clusterv1.ContractVersionedObjectReference{Name: "infra"})
	r.syncs.fail(key, m.UID, [32]byte{}, errors.New("refused"), time.Now())

	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.drains.known).To(BeEmpty())
	g.Expect(r.observations.of).To(BeEmpty())
	g.Expect(r.syncs.failed).To(BeEmpty())
}
