package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	shared "millwright.dev/contracts/remote"
)

// TestAwaitedConnection: what is awaited is the infrastructure of the Cluster as long as nothing tries to connect because of it.
func TestAwaitedConnection(t *testing.T) {
	g := NewWithT(t)
	s := &scope{cluster: &clusterv1.Cluster{}, disconnection: &shared.NotConnectedError{Message: "the API server does not answer"}}
	s.cluster.Name = "c"
	g.Expect(s.awaitedConnection()).To(HaveSuffix("the API server does not answer"))
	s.cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "k", Name: "n"}
	g.Expect(s.awaitedConnection()).To(HavePrefix("Waiting for the infrastructure of Cluster c"))
	s.cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	g.Expect(s.awaitedConnection()).To(HaveSuffix("the API server does not answer"))
}

// TestHeldUndrained: an instance is held until the target of a deleted Cluster has been silent for the grace period, and as long as the
// drain may last if there is no Cluster.
func TestHeldUndrained(t *testing.T) {
	machine := &clusterv1.Machine{Spec: clusterv1.MachineSpec{ClusterName: "c"}}
	deleted := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.NewTime(noon))}}
	for name, test := range map[string]struct {
		cluster *clusterv1.Cluster
		rest    time.Duration
		want    string
	}{
		"deleted":           {cluster: deleted, want: "The target cluster is being deleted: the drain is skipped at 2026-11-20T12:05:00Z if it has not answered by then"},
		"missing":           {rest: time.Hour, want: "Cluster c does not exist, and the instance stays until 2026-11-20T13:00:00Z, as Pods"},
		"missing, for ever": {want: "Cluster c does not exist, and the instance stays, as Pods"},
		"staying":           {cluster: &clusterv1.Cluster{}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{Base: base{Now: noon, Object: machine, Original: machine}, cluster: test.cluster}
			s.disconnection = &shared.NotConnectedError{LastSuccess: noon}
			s.options.RemoteConditionsGracePeriod = 5 * time.Minute
			NewWithT(t).Expect(s.heldUndrained(test.rest)).To(ContainSubstring(test.want))
		})
	}
}
