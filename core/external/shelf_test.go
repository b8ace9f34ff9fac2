package external_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

const group = "standin.example.com"

// definitionReader has definitions. It holds back or refuses reads of their specs.
type definitionReader struct {
	client.Client
	mutex sync.Mutex
	crds  map[string]*unstructured.Unstructured
	// shown are those that a cache shows of their metadata; nil are the same.
	shown  map[string]*unstructured.Unstructured
	hold   map[string]chan struct{}
	refuse map[string]error
	// during is what happens while the next read of a spec is answered, and broken the error of reads of metadata.
	during func()
	broken error
	reads  atomic.Int32
}

func (r *definitionReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if obj.GetObjectKind().GroupVersionKind() != version.CRDKind {
		return r.Client.Get(ctx, key, obj, options...)
	}
	whole, isWhole := obj.(*unstructured.Unstructured)
	if isWhole {
		if err := r.answer(ctx, key.Name); err != nil {
			return err
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	crd := r.crds[key.Name]
	if !isWhole && r.shown != nil {
		crd = r.shown[key.Name]
	}
	if !isWhole && r.broken != nil {
		return r.broken
	}
	if crd == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "customresourcedefinitions"}, key.Name)
	}
	if isWhole {
		crd.DeepCopyInto(whole)
		return nil
	}
	obj.SetLabels(crd.GetLabels())
	obj.SetUID(crd.GetUID())
	obj.SetGeneration(crd.GetGeneration())
	return nil
}

// answer counts the read of a spec, and returns when it is to be answered and how.
func (r *definitionReader) answer(ctx context.Context, crd string) error {
	r.reads.Add(1)
	r.mutex.Lock()
	hold, refuse, during := r.hold[crd], r.refuse[crd], r.during
	r.during = nil
	r.mutex.Unlock()
	if during != nil {
		during()
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return refuse
}

func (r *definitionReader) define(name string, crd *unstructured.Unstructured) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.crds[name] = crd
}

// defined is a definition; nil when there is none.
func (r *definitionReader) defined(name string) *unstructured.Unstructured {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.crds[name]
}

// shows has the cache show a definition as it is, and returns what it has shown and what it does now.
func (r *definitionReader) shows(name string) (before, after *unstructured.Unstructured) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	before, r.shown[name] = r.shown[name], r.crds[name]
	return before, r.shown[name]
}

// holds has reads of a definition wait until the returned function is called.
func (r *definitionReader) holds(crd string) (release func()) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	held := make(chan struct{})
	r.hold[crd] = held
	return func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		delete(r.hold, crd)
		close(held)
	}
}

// breaks has reads of metadata fail; nil lets them succeed.
func (r *definitionReader) breaks(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.broken = err
}

// changes has that happen while the next read of a spec is answered.
func (r *definitionReader) changes(during func()) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.during = during
}

// refuses has reads of a definition fail; nil lets them succeed.
func (r *definitionReader) refuses(crd string, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.refuse[crd] = err
}

// slowMapper maps each kind, Things once they may be.
type slowMapper struct {
	meta.RESTMapper
	things chan struct{}
	err    error
}

func (m slowMapper) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	if kind.Kind == "Thing" {
		<-m.things
		return &meta.RESTMapping{}, m.err
	}
	return &meta.RESTMapping{}, nil
}

// shelf has an object of each of two kinds, Thing and Other, whose definitions one can change.
type shelf struct {
	*WithT
	ctx       context.Context
	reader    *definitionReader
	cache     slowCache
	mapper    slowMapper
	clock     *clocktesting.FakeClock
	kinds     *external.Kinds
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request]
	informers *external.Informers
}

// definition has those versions that it serves, and two more that it does not.
func definition(kind, crd string, generation int64, label string, serves ...string) *unstructured.Unstructured {
	versions := []any{map[string]any{"name": "v0", "served": false}}
	for _, name := range serves {
		versions = append(versions, map[string]any{"name": name, "served": true})
	}
	if !slices.Contains(serves, "v2") {
		versions = append(versions, map[string]any{"name": "v2", "served": false})
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": versions}}}
	obj.SetGroupVersionKind(version.CRDKind)
	obj.SetName(crd)
	obj.SetGeneration(generation)
	obj.SetUID(types.UID("uid of " + kind))
	obj.SetLabels(map[string]string{version.Label(version.V1Beta2): label})
	return obj
}

const things, others = "things." + group, "others." + group

func newShelf(ctx context.Context, g *WithT) *shelf {
	w := newUnmappedShelf(ctx, g)
	close(w.mapper.things)
	return w
}

// newUnmappedShelf returns one whose mapper does not answer for Things.
func newUnmappedShelf(ctx context.Context, g *WithT) *shelf {
	other, newer := object(nil), object(nil)
	other.SetKind("Other")
	newer.SetAPIVersion(group + "/v2")
	scheme := runtime.NewScheme()
	g.Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object(nil), newer, other).Build()
	w := &shelf{
		WithT: g, ctx: ctx, reader: &definitionReader{
			Client: server, hold: map[string]chan struct{}{}, refuse: map[string]error{}, crds: map[string]*unstructured.Unstructured{
				things: definition("Thing", things, 1, "v1", "v1"), others: definition("Other", others, 1, "v1", "v1"),
			},
		},
		cache: slowCache{
			reader: server, informer: controllertest.NewFakeInformer(controllertest.Synced),
			begun: &atomic.Int32{}, removed: &atomic.Int32{},
		},
		mapper: slowMapper{things: make(chan struct{})},
		clock:  clocktesting.NewFakeClock(time.Now()),
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
	}
	w.use(w.cache, w.clock)
	return w
}

// use begins again with another cache and another time.
func (w *shelf) use(c cache.Cache, clock clock.Clock) {
	w.informers = external.NewInformers(&version.Resolver{Reader: w.reader}, c, w.reader, w.mapper)
	w.informers.Clock = clock
	w.kinds = &external.Kinds{Informers: w.informers, Clock: clock}
	toWaiter := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{waiter} }
	w.Expect(w.kinds.Bind(startedController{ctx: w.ctx, queue: w.queue}, handler.EnqueueRequestsFromMapFunc(toWaiter))).To(Succeed())
}

var waiter = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "waiter"}}

// get reads the object of a kind for the waiter.
func (w *shelf) get(kind string) error {
	_, err := w.kinds.Get(w.ctx, clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: "t"}, "ns", waiter)
	return err
}

// define changes the definition of Things, which is an event.
func (w *shelf) define(crd *unstructured.Unstructured) {
	w.reader.define(things, crd)
	w.informers.Changed(w.ctx, things)
}

// drained empties the queue and returns whether the waiter was in it.
func (w *shelf) drained() bool {
	was := false
	for w.queue.Len() > 0 {
		request, _ := w.queue.Get()
		w.queue.Done(request)
		was = true
	}
	return was
}

// enqueued waits until the waiter is enqueued.
func (w *shelf) enqueued(why string) {
	w.Eventually(w.drained).Should(BeTrue(), why)
}
