package machine

import (
	"testing"

	. "github.com/onsi/gomega"
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
