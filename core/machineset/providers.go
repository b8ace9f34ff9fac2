package machineset

import (
	"context"
	"sync"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// providerReader reads objects of the providers' kinds from the manager's cache. It starts to watch the kinds
// of templates when it first meets them, so that whoever waits for a template learns that it has come.
type providerReader struct {
	cache      cache.Cache
	controller controller.Controller
	handler    handler.EventHandler

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

// get reads an object; nil when there is none of that name.
func (p *providerReader) get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	switch err := p.cache.Get(ctx, key, object); {
	case err == nil:
		return object, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	default:
		return nil, errors.Wrapf(err, "reading %s %s", kind.Kind, key)
	}
}

// watchTemplates watches a kind of templates, once.
func (p *providerReader) watchTemplates(kind schema.GroupVersionKind) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched[kind] {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := p.controller.Watch(source.Kind(p.cache, client.Object(object), p.handler, predicate.GenerationChangedPredicate{})); err != nil {
		return errors.Wrapf(err, "watching %s", kind)
	}
	if p.watched == nil {
		p.watched = map[schema.GroupVersionKind]bool{}
	}
	p.watched[kind] = true
	return nil
}
