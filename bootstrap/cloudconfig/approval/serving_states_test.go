package approval

import (
	"context"
	"crypto/x509"
	"errors"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/contracts/controller/bulkhead"
	"millwright.dev/contracts/remote"
)

// step is a request to an API server that a test can have fail.
type step string

const (
	readsRequest step = "the request is read"
	readsMachine step = "the Machine is read from the cache"
	readsLive    step = "the Machine is read from the API server"
	readsCluster step = "the Cluster is read"
	connects     step = "a client of the target cluster"
	approves     step = "the request is approved"
)

// servingWorld is a request for a serving certificate that is right, of a Machine that is linked, without an API server.
type servingWorld struct {
	*WithT
	csr     *certificatesv1.CertificateSigningRequest
	cluster *clusterv1.Cluster
	machine *clusterv1.Machine
	config  *bootstrapv1.CloudConfig
	fails   map[step]error
	// live is called when the Machine was read from the API server.
	live       func()
	target     client.WithWatch
	events     *events.FakeRecorder
	reconciler *servingReconciler
}

func newServingWorld(t *testing.T) *servingWorld {
	t.Helper()
	w := &servingWorld{WithT: NewWithT(t), fails: map[step]error{}, live: func() {}, events: events.NewFakeRecorder(9)}
	w.csr = servingRequest(t, nil)
	w.csr.CreationTimestamp = metav1.Now()
	w.cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cluster"}}
	w.machine = servingMachine()
	w.machine.Namespace, w.machine.UID, w.machine.Spec.ClusterName = "ns", "uid-1", "cluster"
	w.machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		Kind: "CloudConfig", APIGroup: bootstrapv1.GroupVersion.Group, Name: "config",
	}
	w.config = &bootstrapv1.CloudConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "config",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.machine, clusterv1.GroupVersion.WithKind("Machine"))},
	}}
	w.reconciler = &servingReconciler{Reconciler: &Reconciler{Targets: w, Recorder: w.events}}
	return w
}

// GetReader implements Targets.
func (w *servingWorld) GetReader(context.Context, client.ObjectKey) (client.Reader, error) {
	return w.target, w.fails[readsRequest]
}

// GetUncachedClient implements Targets.
func (w *servingWorld) GetUncachedClient(context.Context, client.ObjectKey) (client.Client, error) {
	if err := w.fails[connects]; err != nil {
		return nil, err
	}
	return w.target, nil
}

// request names it.
func (w *servingWorld) request() Request {
	return Request{Cluster: client.ObjectKeyFromObject(w.cluster), Name: w.csr.Name}
}

// reconcile reconciles a request, with the objects of the management cluster as they are now.
func (w *servingWorld) reconcile(ctx context.Context, asked Request) (reconcile.Result, error) {
	if w.target == nil {
		target := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.csr.DeepCopy()).WithStatusSubresource(w.csr).Build()
		w.target = interceptor.NewClient(target, interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object, _ ...client.SubResourceUpdateOption) error {
				w.Expect(name).To(Equal("approval"))
				if err := w.fails[approves]; err != nil {
					return err
				}
				return c.Status().Update(ctx, o)
			},
		})
	}
	objects := []client.Object{w.cluster.DeepCopy(), w.machine.DeepCopy(), w.config.DeepCopy()}
	home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(w.machine).Build()
	reading := func(of func(client.Object) error) client.Client {
		return interceptor.NewClient(home, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if err := c.Get(ctx, key, o, options...); err != nil {
					return err
				}
				return of(o)
			},
		})
	}
	w.reconciler.Client = reading(func(o client.Object) error {
		switch o.(type) {
		case *clusterv1.Machine:
			return w.fails[readsMachine]
		case *clusterv1.Cluster:
			return w.fails[readsCluster]
		}
		return nil
	})
	w.reconciler.APIReader = reading(func(client.Object) error { w.live(); return w.fails[readsLive] })
	return w.reconciler.Reconcile(ctx, asked)
}

// conditions are those of the request.
func (w *servingWorld) conditions(ctx context.Context) []certificatesv1.CertificateSigningRequestCondition {
	csr := &certificatesv1.CertificateSigningRequest{}
	w.Expect(client.IgnoreNotFound(w.target.Get(ctx, client.ObjectKeyFromObject(w.csr), csr))).To(Succeed())
	return csr.Status.Conditions
}

// TestWhatBecomesOfAServingRequest: it is approved, left, or waits; what cannot be read or written is an error and no answer.
func TestWhatBecomesOfAServingRequest(t *testing.T) {
	refused, gone := errors.New("not before Monday"), apierrors.NewNotFound(schema.GroupResource{}, "serving-1")
	away := &remote.NotConnectedError{Reason: remote.Unreachable}
	fails := func(at step, with error) func(*servingWorld) { return func(w *servingWorld) { w.fails[at] = with } }
	names := func(change func(*x509.CertificateRequest)) func(*servingWorld) {
		return func(w *servingWorld) { w.csr.Spec.Request = servingRequest(t, change).Spec.Request }
	}
	unlinked := func(w *servingWorld) { w.machine.Status.NodeRef.Name = "" }
	old := func(w *servingWorld) { w.csr.CreationTimestamp = metav1.NewTime(time.Now().Add(-servingTimeout)) }
	uri := names(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} })
	const approved, left, waits, failed = "approved", "left", "waits", "failed"
	for name, test := range map[string]struct {
		change []func(*servingWorld)
		want   string
		says   string
	}{
		"its own":                           {nil, approved, "Approved CertificateSigningRequest serving-1 for the serving certificate of Node machine-1"},
		"there is none":                     {[]func(*servingWorld){func(w *servingWorld) { w.csr.Name = "another" }}, left, ""},
		"of another signer":                 {[]func(*servingWorld){func(w *servingWorld) { w.csr.Spec.SignerName = "x/y" }}, left, ""},
		"of no Node":                        {[]func(*servingWorld){func(w *servingWorld) { w.csr.Spec.Username = "machine-1" }}, left, ""},
		"of a Node that is none of ours":    {[]func(*servingWorld){func(w *servingWorld) { w.csr.Spec.Username += "0" }}, left, ""},
		"its Machine cannot be read":        {[]func(*servingWorld){fails(readsMachine, refused)}, failed, ""},
		"its Machine is of another Cluster": {[]func(*servingWorld){func(w *servingWorld) { w.machine.Spec.ClusterName = "b" }}, left, ""},
		"its Machine cannot be read live":   {[]func(*servingWorld){fails(readsLive, refused)}, failed, ""},
		"its Machine has another provider":  {[]func(*servingWorld){func(w *servingWorld) { w.machine.Spec.Bootstrap.ConfigRef.Kind = "X" }}, left, ""},
		"whether it is paused is not known": {[]func(*servingWorld){fails(readsCluster, refused)}, failed, ""},
		"it is paused":                      {[]func(*servingWorld){func(w *servingWorld) { w.cluster.Spec.Paused = ptr.To(true) }}, waits, ""},
		"it may be linked":                  {[]func(*servingWorld){unlinked}, waits, ""},
		"it has not been linked for long":   {[]func(*servingWorld){unlinked, old}, left, "is not approved: the Machine is not linked with the Node"},
		"it will never be right":            {[]func(*servingWorld){uri}, left, "is not approved: it names e-mail addresses or URIs"},
		"it is old, and right":              {[]func(*servingWorld){old}, approved, "Approved"},
		"the connection is lost":            {[]func(*servingWorld){fails(connects, away)}, left, ""},
		"there is no client":                {[]func(*servingWorld){fails(connects, refused)}, failed, ""},
		"the approval is refused":           {[]func(*servingWorld){fails(approves, refused)}, failed, ""},
		"it goes while it is approved":      {[]func(*servingWorld){fails(approves, gone)}, left, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newServingWorld(t)
			asked := w.request()
			for _, change := range test.change {
				change(w)
			}
			result, err := w.reconcile(t.Context(), asked)
			if test.want == failed {
				w.Expect(err).To(MatchError(refused))
			} else {
				w.Expect(err).NotTo(HaveOccurred())
			}
			w.Expect(result.RequeueAfter).To(Equal(map[bool]time.Duration{true: servingRetry}[test.want == waits]))
			w.Expect(w.conditions(t.Context())).To(HaveLen(map[bool]int{true: 1}[test.want == approved]))
			w.Expect(w.reconciler.awaited.requests).To(HaveLen(map[bool]int{true: 1}[test.want == waits || test.want == failed]), "by its Machine")
			if test.says == "" {
				w.Expect(w.events.Events).NotTo(Receive())
			} else {
				w.Expect(w.events.Events).To(Receive(ContainSubstring(test.says)))
			}
		})
	}
}

// TestAServingRequestThatCannotBeRead: nothing is known of a Machine that could wake it.
func TestAServingRequestThatCannotBeRead(t *testing.T) {
	w := newServingWorld(t)
	w.fails[readsRequest] = errors.New("not before Monday")
	_, err := w.reconcile(t.Context(), w.request())
	w.Expect(err).To(MatchError(w.fails[readsRequest]))
	w.Expect(w.reconciler.awaited.requests).To(BeEmpty())
}

// TestAnApprovalOfAServingRequest says by whom and why.
func TestAnApprovalOfAServingRequest(t *testing.T) {
	w := newServingWorld(t)
	_, err := w.reconcile(t.Context(), w.request())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.conditions(t.Context())).To(ConsistOf(certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approvedReason,
		Message: "It names addresses of Machine ns/machine-1 only",
	}))
}

// TestServingRequestsOfAClusterThatHangs: a worker does not wait for what others of the Cluster wait for already.
func TestServingRequestsOfAClusterThatHangs(t *testing.T) {
	w := newServingWorld(t)
	w.reconciler.turns = bulkhead.ForWorkers[client.ObjectKey](1)
	leave, _ := w.reconciler.turns.Enter(w.request().Cluster)
	result, err := w.reconcile(t.Context(), w.request())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(BeNumerically(">", 0))
	w.Expect(w.conditions(t.Context())).To(BeEmpty())
	leave()
	result, err = w.reconcile(t.Context(), w.request())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result).To(BeZero())
	w.Expect(w.conditions(t.Context())).To(HaveLen(1))
	_, entered := w.reconciler.turns.Enter(w.request().Cluster)
	w.Expect(entered).To(BeTrue(), "it has left")
}
