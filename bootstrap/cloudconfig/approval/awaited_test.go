package approval

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestALinkWakesTheRequestThatWaitsForIt: a kubelet asks for its serving certificate before its Machine is linked, and gets it as soon as
// that is, also when that happens while the request is being looked at.
func TestALinkWakesTheRequestThatWaitsForIt(t *testing.T) {
	f := newFixture(t, "awaited")
	csr := servingRequest(t, nil)
	csr.Name, csr.Spec.Username, csr.Spec.Groups = "awaited-serving", "", nil
	f.Expect(f.as("system:node:machine-1", []string{"system:nodes"}).Create(t.Context(), csr)).To(Succeed())
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())
	defer queue.ShutDown()
	r := &servingReconciler{Reconciler: &Reconciler{Targets: f, Recorder: f.events}}
	this := Request{Cluster: client.ObjectKeyFromObject(f.cluster), Name: csr.Name}
	changes := func(change func(*clusterv1.Machine)) {
		after := f.machine.DeepCopy()
		change(after)
		r.awaited.handler().Update(t.Context(), event.TypedUpdateEvent[*clusterv1.Machine]{ObjectOld: f.machine, ObjectNew: after}, queue)
	}
	link := func(m *clusterv1.Machine) { m.Status.NodeRef.Name = m.Name }
	reconcile := func(meanwhile func()) {
		home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.cluster, f.machine, f.config).WithStatusSubresource(f.machine).Build()
		live := interceptor.NewClient(home, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
				defer meanwhile()
				return c.Get(ctx, key, obj, options...)
			},
		})
		r.Client, r.APIReader = home, live
		_, err := r.Reconcile(t.Context(), this)
		f.Expect(err).NotTo(HaveOccurred())
		f.machine.ResourceVersion, f.cluster.ResourceVersion, f.config.ResourceVersion = "", "", ""
	}
	woken := func() (requests []Request) {
		for queue.Len() > 0 {
			request, _ := queue.Get()
			queue.Done(request)
			requests = append(requests, request)
		}
		return requests
	}

	reconcile(func() {})
	changes(func(m *clusterv1.Machine) { m.Status.Phase = "Running" })
	f.Expect(woken()).To(BeEmpty(), "that changes nothing")
	changes(link)
	f.Expect(woken()).To(ConsistOf(this))
	changes(link)
	f.Expect(woken()).To(BeEmpty(), "it is awake")
	reconcile(func() { changes(link) })
	f.Expect(woken()).To(ConsistOf(this), "it had read the Machine as it was before")
	reconcile(func() {})
	changes(func(m *clusterv1.Machine) { m.Status.Addresses = servingMachine().Status.Addresses })
	f.Expect(woken()).To(ConsistOf(this))

	reconcile(func() {})
	r.awaited.handler().Delete(t.Context(), event.TypedDeleteEvent[*clusterv1.Machine]{Object: f.machine}, queue)
	f.Expect(r.awaited.requests).To(BeEmpty(), "nothing is kept of a Machine that is gone")
	f.Expect(woken()).To(BeEmpty())

	f.machine.Status = servingMachine().Status
	reconcile(func() {})
	f.Expect(f.approved(csr.Name)).To(BeTrue())
	changes(func(m *clusterv1.Machine) { m.Status.Addresses = nil })
	f.Expect(woken()).To(BeEmpty(), "it does not wait any more")
}
