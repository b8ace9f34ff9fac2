package external

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/version"
)

// Informers are those of providers' kinds, one for each kind, which the controllers of a manager share. The informer of a kind ends when
// the kind is uninstalled or installed again, or when another version of it is to be read: otherwise it would list without success for as
// long as the process lives, and return outdated objects.
type Informers struct {
	// Clock is the time.
	Clock clock.Clock

	resolver  *version.Resolver
	cache     cache.Cache
	apiReader client.Reader
	mapper    meta.RESTMapper

	// mutex is held while a kind is resolved and its informer is used: nothing older than what that goes by is put in its place. No request
	// is sent meanwhile: one kind that gets no answer would hold up all.
	mutex sync.RWMutex
	kinds map[schema.GroupKind]*informer
	// openings are the kinds whose definitions are being examined.
	openings map[schema.GroupKind]*opening
	// unserved are the kinds whose definitions do not serve the version that is to be read.
	unserved map[schema.GroupKind]unserved
	// life is the controllers', which openings end with.
	life context.Context
}

// informer is that of one version of a kind.
type informer struct {
	cache.Informer
	gvk schema.GroupVersionKind
	// of is the definition that it is known to be right for.
	of version.Resolved
	// life ends with the informer.
	life context.Context
	end  context.CancelFunc
}

// NewInformers returns the Informers of a manager with that cache of the management cluster. apiReader reads the definitions whose kinds
// are watched, whole and from the API server: once for each, and again when its spec has changed. mapper is the cache's.
func NewInformers(resolver *version.Resolver, cache cache.Cache, apiReader client.Reader, mapper meta.RESTMapper) *Informers {
	return &Informers{
		Clock: clock.RealClock{}, resolver: resolver, cache: cache, apiReader: apiReader, mapper: mapper, life: context.Background(),
		kinds: map[schema.GroupKind]*informer{}, openings: map[schema.GroupKind]*opening{}, unserved: map[schema.GroupKind]unserved{},
	}
}

// start sets what the openings end with.
func (i *Informers) start(life context.Context) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.life = life
}

// use calls f with the informer of a kind, which lasts at least until f returns. It returns the errors of Resolver.Resolve,
// *version.NotServedError, and *NotSyncedError while the definition is examined for the first time; w is enqueued when that ends. After
// a change of the definition that leaves the version, f goes by the informer as it is, and w is enqueued if it should not have.
func (i *Informers) use(ctx context.Context, gk schema.GroupKind, w waiter, f func(*informer, version.Resolved) error) error {
	i.mutex.RLock()
	resolved, err := i.resolve(ctx, gk)
	found := i.kinds[gk]
	if err == nil && found.reads(resolved) {
		defer i.mutex.RUnlock()
		return f(found, resolved)
	}
	known := err != nil && found == nil && i.openings[gk] == nil
	i.mutex.RUnlock()
	if known {
		return err
	}

	i.mutex.Lock()
	defer i.mutex.Unlock()
	if resolved, err = i.review(ctx, gk); err != nil {
		return err
	}
	found = i.kinds[gk]
	if !found.reads(resolved) {
		o := i.open(gk, resolved)
		o.waiters[w] = struct{}{}
		if found == nil {
			return o.notSynced()
		}
	}
	return f(found, resolved)
}

// resolve is Resolver.Resolve with what is known of the versions that are served; the mutex is held.
func (i *Informers) resolve(ctx context.Context, gk schema.GroupKind) (version.Resolved, error) {
	resolved, err := i.resolver.Resolve(ctx, gk)
	if err == nil {
		err = i.unserved[gk].errorFor(resolved)
	}
	return resolved, err
}

// reads reports whether the informer reads the version of the kind of that definition.
func (i *informer) reads(resolved version.Resolved) bool { return i != nil && i.of == resolved }

// keeps reports whether the informer can be kept for a definition that serves its version.
func (i *informer) keeps(resolved version.Resolved) bool {
	return i != nil && i.gvk == resolved.GVK && i.of.UID == resolved.UID
}

// review ends the informer of a kind if that is not what the definition says any more, and what is under way for another definition; the
// mutex is held.
func (i *Informers) review(ctx context.Context, gk schema.GroupKind) (version.Resolved, error) {
	resolved, err := i.resolve(ctx, gk)
	if err != nil && !undefined(err) {
		return resolved, err
	}
	if found := i.kinds[gk]; found != nil && (err != nil || !found.keeps(resolved)) {
		i.end(ctx, gk)
	}
	if o := i.openings[gk]; o != nil {
		if err != nil {
			resolved = version.Resolved{}
		}
		o.aim(resolved)
	}
	return resolved, err
}

// end ends the informer of a kind; the mutex is held.
func (i *Informers) end(ctx context.Context, gk schema.GroupKind) {
	found := i.kinds[gk]
	delete(i.kinds, gk)
	found.end()
	i.remove(ctx, found.gvk)
}

func (i *Informers) remove(ctx context.Context, gvk schema.GroupVersionKind) {
	if err := i.cache.RemoveInformer(ctx, objectOf(gvk)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "The watch of a kind that is not used any more could not be ended", "kind", gvk)
	}
}

// undefined reports whether an error of the Resolver means that there is no version of the kind to be read.
func undefined(err error) bool {
	var noContract *version.NoContractError
	return NotInstalled(err) || errors.As(err, &noContract) || NotServed(err)
}

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// definitions is a source without requests, that ends informers whose kind no reconcile may ask for again.
func (i *Informers) definitions() source.Source {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(version.CRDKind)
	return source.Kind[client.Object](i.cache, crd, handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ requestQueue) { i.changed(ctx, e.ObjectNew.GetName()) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ requestQueue) { i.changed(ctx, e.Object.GetName()) },
	})
}

// changed reviews the kind of a definition.
func (i *Informers) changed(ctx context.Context, crd string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	kinds := slices.AppendSeq(slices.Collect(maps.Keys(i.kinds)), maps.Keys(i.openings))
	for _, gk := range kinds {
		if version.CRDName(gk) != crd {
			continue
		}
		resolved, err := i.review(ctx, gk)
		switch found := i.kinds[gk]; {
		case err != nil && !undefined(err):
			ctrl.LoggerFrom(ctx).Error(err, "It could not be found out which version of a kind is to be read", "kind", gk)
		case err == nil && found != nil && !found.reads(resolved):
			i.open(gk, resolved)
		}
	}
}

func objectOf(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj
}
