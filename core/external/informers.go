package external

import (
	"context"
	"sync"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
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
	resolver  *version.Resolver
	cache     cache.Cache
	apiReader client.Reader

	// mutex is held while a kind is resolved and its informer is used: nothing older than what that goes by is put in its place.
	mutex sync.RWMutex
	kinds map[schema.GroupKind]*informer
	// unserved are the kinds whose definitions do not serve the version that is to be read.
	unserved map[schema.GroupKind]unserved
}

// informer is that of one version of a kind.
type informer struct {
	cache.Informer
	gvk schema.GroupVersionKind
	// of is the definition that it was begun for.
	of version.Resolved
	// life ends with the informer.
	life context.Context
	end  context.CancelFunc
}

// NewInformers returns the Informers of a manager with that cache of the management cluster. apiReader reads the definitions whose kinds
// are watched, whole and from the API server: once for each, and again when its spec has changed.
func NewInformers(resolver *version.Resolver, cache cache.Cache, apiReader client.Reader) *Informers {
	return &Informers{
		resolver: resolver, cache: cache, apiReader: apiReader,
		kinds: map[schema.GroupKind]*informer{}, unserved: map[schema.GroupKind]unserved{},
	}
}

// use calls f with the informer of a kind, which lasts at least until f returns. It returns the errors of Resolver.Resolve, and
// *version.NotServedError.
func (i *Informers) use(ctx context.Context, gk schema.GroupKind, f func(*informer, version.Resolved) error) error {
	i.mutex.RLock()
	resolved, err := i.resolver.Resolve(ctx, gk)
	found := i.kinds[gk]
	if err == nil && found.reads(resolved) {
		defer i.mutex.RUnlock()
		return f(found, resolved)
	}
	if err == nil {
		err = i.unserved[gk].errorFor(resolved)
	}
	i.mutex.RUnlock()
	if err != nil && found == nil {
		return err
	}

	i.mutex.Lock()
	defer i.mutex.Unlock()
	if resolved, err = i.review(ctx, gk); err != nil {
		return err
	}
	if i.kinds[gk] == nil {
		if i.kinds[gk], err = i.begin(ctx, resolved); err != nil {
			delete(i.kinds, gk)
			return err
		}
	}
	return f(i.kinds[gk], resolved)
}

// reads reports whether the informer reads the version of the kind of that definition.
func (i *informer) reads(resolved version.Resolved) bool { return i != nil && i.of == resolved }

// keeps reports whether the informer can be kept for a definition that serves its version.
func (i *informer) keeps(resolved version.Resolved) bool {
	return i != nil && i.gvk == resolved.GVK && i.of.UID == resolved.UID
}

// begin begins to read a version of a kind; the mutex is held.
func (i *Informers) begin(ctx context.Context, resolved version.Resolved) (*informer, error) {
	begun, err := i.cache.GetInformer(ctx, objectOf(resolved.GVK), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, errors.Wrapf(err, "watching %s", resolved.GVK)
	}
	life, end := context.WithCancel(context.Background())
	return &informer{Informer: begun, gvk: resolved.GVK, of: resolved, life: life, end: end}, nil
}

// review ends the informer of a kind if that is not what the definition says any more; the mutex is held.
func (i *Informers) review(ctx context.Context, gk schema.GroupKind) (version.Resolved, error) {
	resolved, err := i.resolver.Resolve(ctx, gk)
	found := i.kinds[gk]
	if err == nil && found.reads(resolved) {
		return resolved, nil
	}
	if err == nil {
		err = i.served(ctx, resolved)
	}
	switch {
	case err != nil && !undefined(err) || found == nil:
		return resolved, err
	case err == nil && found.keeps(resolved):
		found.of = resolved
		return resolved, nil
	}
	delete(i.kinds, gk)
	found.end()
	if failure := i.cache.RemoveInformer(ctx, objectOf(found.gvk)); failure != nil {
		ctrl.LoggerFrom(ctx).Error(failure, "The watch of a kind that is not used any more could not be ended", "kind", found.gvk)
	}
	return resolved, err
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
	for gk := range i.kinds {
		if version.CRDName(gk) != crd {
			continue
		}
		if _, err := i.review(ctx, gk); err != nil && !undefined(err) {
			ctrl.LoggerFrom(ctx).Error(err, "It could not be found out which version of a kind is to be read", "kind", gk)
		}
	}
}

func objectOf(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj
}
