package external_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

// slowCache has all objects of a kind, but a wait for its sync never returns: waiting is by polling, and a deletion may come before the
// next poll.
type slowCache struct {
	cache.Cache
	reader   client.Reader
	informer *controllertest.FakeInformer
}

func (c slowCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, obj, options...)
}

func (c slowCache) GetInformer(ctx context.Context, _ client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	asked := &cache.InformerGetOptions{}
	for _, option := range options {
		option(asked)
	}
	if asked.BlockUntilSynced == nil || *asked.BlockUntilSynced {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.informer, nil
}

// startedController starts sources as one that has started does.
type startedController struct {
	controller.Controller
	ctx   context.Context
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (c startedController) Watch(source source.TypedSource[reconcile.Request]) error {
	return source.Start(c.ctx, c.queue)
}

// TestWhatWasReadIsWatched: a reconciler that has read an object and waits for its end is enqueued by that, however soon it comes after the
// first read of the kind.
func TestWhatWasReadIsWatched(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	thing := object(nil)
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"versions": []any{map[string]any{"name": "v1", "served": true}},
	}}}
	crd.SetGroupVersionKind(version.CRDKind)
	crd.SetName("things.standin.example.com")
	crd.SetLabels(map[string]string{version.Label(version.V1Beta2): "v1"})
	scheme := runtime.NewScheme()
	g.Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(crd, thing).Build()
	informer := controllertest.NewFakeInformer(controllertest.Synced)
	informers := external.NewInformers(&version.Resolver{Reader: reader}, slowCache{reader: reader, informer: informer}, reader)
	kinds := &external.Kinds{Informers: informers, Clock: clock.RealClock{}}
	waiter := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "waiter"}}
	toWaiter := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{waiter} }
	g.Expect(kinds.Bind(startedController{ctx: ctx, queue: queue}, handler.EnqueueRequestsFromMapFunc(toWaiter))).To(Succeed())

	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "standin.example.com", Kind: "Thing", Name: "t"}
	found, err := kinds.Get(ctx, ref, "ns", waiter)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Unstructured).NotTo(BeNil())
	for queue.Len() > 0 { // What was there when the watch began.
		request, _ := queue.Get()
		queue.Done(request)
	}
	informer.Delete(&unstructured.Unstructured{Object: thing.DeepCopy().Object})
	g.Expect(queue.Len()).To(Equal(1), "the end of the object was missed")
}
