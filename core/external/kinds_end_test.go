package external_test

import (
	"context"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// slowCache has all objects of a kind, but a wait for its sync never returns: waiting is by polling, and a deletion may come before the
// next poll.
type slowCache struct {
	cache.Cache
	reader   client.Reader
	informer *controllertest.FakeInformer // of Things
	// begun and removed count the informers of Things.
	begun, removed *atomic.Int32
}

func (c slowCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, obj, options...)
}

func (c slowCache) GetInformer(ctx context.Context, obj client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "Thing" {
		return controllertest.NewFakeInformer(controllertest.Synced), nil
	}
	asked := &cache.InformerGetOptions{}
	for _, option := range options {
		option(asked)
	}
	if asked.BlockUntilSynced == nil || *asked.BlockUntilSynced {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c.begun.Add(1)
	return c.informer, nil
}

func (c slowCache) WaitForCacheSync(context.Context) bool { return true }

func (c slowCache) RemoveInformer(context.Context, client.Object) error {
	c.removed.Add(1)
	return nil
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
	w := newShelf(ctx, g)
	queue, informer := w.queue, w.cache.informer
	defer queue.ShutDown()
	g.Eventually(func() error { return w.get("Thing") }).Should(Succeed())
	for queue.Len() > 0 { // What was there when the watch began.
		request, _ := queue.Get()
		queue.Done(request)
	}
	informer.Delete(&unstructured.Unstructured{Object: object(nil).Object})
	g.Expect(queue.Len()).To(Equal(1), "the end of the object was missed")
}
