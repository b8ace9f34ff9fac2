package approval

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/contracts/controller/bulkhead"
)

// readTargets yield a reader for every Cluster.
type readTargets struct{ client.Reader }

func (r readTargets) GetReader(context.Context, client.ObjectKey) (client.Reader, error) {
	return r.Reader, nil
}

func (readTargets) GetUncachedClient(context.Context, client.ObjectKey) (client.Client, error) {
	panic("nothing is known of the request")
}

// unfilled returns a cache that is started and never filled: its target does not answer lists, or not to their end.
func unfilled(t *testing.T) client.Reader {
	t.Helper()
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-released:
		case <-request.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(released) })
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), meta.RESTScopeRoot)
	empty, err := cache.New(&rest.Config{Host: server.URL}, cache.Options{Scheme: scheme, Mapper: mapper})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	go func() { _ = empty.Start(t.Context()) }()
	NewWithT(t).Expect(empty.WaitForCacheSync(t.Context())).To(BeTrue(), "it has been started")
	return empty
}

// TestACacheThatNeverFillsHoldsNoPlace: callers that read from it wait for it, also when the connection has been replaced since.
func TestACacheThatNeverFillsHoldsNoPlace(t *testing.T) {
	g := NewWithT(t)
	r := &Reconciler{
		Client:  fake.NewClientBuilder().WithScheme(scheme).WithIndex(&clusterv1.Machine{}, hashIndex, indexHash).Build(),
		Targets: readTargets{unfilled(t)}, turns: bulkhead.ForWorkers[client.ObjectKey](1),
	}
	cluster := client.ObjectKey{Namespace: "ns", Name: "hung"}
	ended := make(chan error, 1)
	go func() {
		_, err := r.Reconcile(t.Context(), Request{Cluster: cluster, Name: "csr"})
		ended <- err
	}()
	g.Eventually(ended, time.Minute).Should(Receive(BeNil()))
	_, entered := r.turns.Enter(cluster)
	g.Expect(entered).To(BeTrue(), "the place is free again")
}

// TestACacheThatNeverFillsEndsTheSearchForALaterRequest: the connection may have been replaced since the request was read.
func TestACacheThatNeverFillsEndsTheSearchForALaterRequest(t *testing.T) {
	r := &Reconciler{Targets: readTargets{unfilled(t)}}
	ended := make(chan error, 1)
	go func() {
		_, err := r.later(
			t.Context(),
			client.ObjectKey{Namespace: "ns", Name: "hung"},
			&certificatesv1.CertificateSigningRequest{},
			Observation{},
		)
		ended <- err
	}()
	NewWithT(t).Eventually(ended, time.Minute).Should(Receive(HaveOccurred()))
}
