package approval

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/contracts/controller/bulkhead"
	"millwright.dev/contracts/remote"
)

// hungTargets do not answer for one Cluster before the test ends.
type hungTargets struct {
	hung   client.ObjectKey
	called chan struct{}
}

func (h *hungTargets) GetReader(ctx context.Context, cluster client.ObjectKey) (client.Reader, error) {
	if cluster == h.hung {
		h.called <- struct{}{}
		<-ctx.Done()
	}
	return nil, &remote.NotConnectedError{Reason: remote.Unreachable, Message: "the API server does not answer"}
}

func (h *hungTargets) GetUncachedClient(ctx context.Context, cluster client.ObjectKey) (client.Client, error) {
	_, err := h.GetReader(ctx, cluster)
	return nil, err
}

// TestATargetThatHangsDelaysNoOtherCluster: beyond the share of its Cluster a request comes again later, and holds no worker.
func TestATargetThatHangsDelaysNoOtherCluster(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	targets := &hungTargets{hung: client.ObjectKey{Namespace: "ns", Name: "hung"}, called: make(chan struct{})}
	r := &Reconciler{
		Client:  fake.NewClientBuilder().WithScheme(scheme).WithIndex(&clusterv1.Machine{}, hashIndex, indexHash).Build(),
		Targets: targets, turns: bulkhead.ForWorkers[client.ObjectKey](8),
	}
	ended := make(chan error)
	for range 2 {
		go func() {
			_, err := r.Reconcile(ctx, Request{Cluster: targets.hung, Name: "csr"})
			ended <- err
		}()
		<-targets.called
	}
	result, err := r.Reconcile(ctx, Request{Cluster: targets.hung, Name: "another"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(BeNumerically(">", 0), "the share of the Cluster is taken")
	result, err = r.Reconcile(ctx, Request{Cluster: client.ObjectKey{Namespace: "ns", Name: "other"}, Name: "csr"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(BeZero())

	cancel()
	g.Expect(<-ended).To(Succeed())
	g.Expect(<-ended).To(Succeed())
	_, entered := r.turns.Enter(targets.hung)
	g.Expect(entered).To(BeTrue(), "the places are free again")
}
