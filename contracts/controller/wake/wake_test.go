package wake_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/wake"
)

func newQueue[R comparable](t *testing.T) workqueue.TypedRateLimitingInterface[R] {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[R]())
	t.Cleanup(queue.ShutDown)
	return queue
}

// TestWhatComesBeforeTheStartWaits: each request is enqueued once when the controller starts, and at once afterwards.
func TestWhatComesBeforeTheStartWaits(t *testing.T) {
	g := NewWithT(t)
	var waker wake.Typed[string]
	for _, request := range []string{"a", "b", "a"} {
		waker.Enqueue(request)
	}
	queue := newQueue[string](t)
	g.Expect(waker.Source().Start(t.Context(), queue)).To(Succeed())
	g.Expect(queue.Len()).To(Equal(2))
	waker.Enqueue("c")
	var got []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		got = append(got, request)
	}
	g.Expect(got).To(ConsistOf("a", "b", "c"))
}

// delays records what is added later.
type delays struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added map[string]time.Duration
}

func (d *delays) AddAfter(request reconcile.Request, after time.Duration) {
	d.added[request.Name] = after
}

func TestEnqueueAfter(t *testing.T) {
	g := NewWithT(t)
	waker, queue := wake.New(), &delays{added: map[string]time.Duration{}}
	g.Expect(waker.Source().Start(t.Context(), queue)).To(Succeed())
	waker.EnqueueAfter(types.NamespacedName{Name: "later"}, time.Minute)
	waker.Enqueue(types.NamespacedName{Name: "now"})
	g.Expect(queue.added).To(Equal(map[string]time.Duration{"later": time.Minute, "now": 0}))
}

func TestWaker(t *testing.T) {
	g := NewWithT(t)
	waker, queue := wake.New(), newQueue[reconcile.Request](t)
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	waker.Enqueue(key)
	g.Expect(waker.Source().Start(t.Context(), queue)).To(Succeed())
	request, _ := queue.Get()
	g.Expect(request.NamespacedName).To(Equal(key))
}
