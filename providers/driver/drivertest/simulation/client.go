package simulation

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
)

// cacheClient reads from the cache of an incarnation and writes to its API server.
type cacheClient[M driver.Object] struct {
	client.Client
	p *Process[M]
}

func (c *cacheClient[M]) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetName(key.Name)
	id := IDOf(obj)
	c.p.mu.Lock()
	found, ok := c.p.cache[id]
	c.p.mu.Unlock()
	if !ok {
		return apierrors.NewNotFound(id.resource(), id.Name)
	}
	copyInto(found, obj)
	return nil
}

func (c *cacheClient[M]) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return fill(list, c.p.cache, opts)
}

// fill puts copies of those objects into a list that are of its kind and are selected.
func fill(list client.ObjectList, objects map[ID]client.Object, opts []client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	if o.LabelSelector == nil {
		o.LabelSelector = labels.Everything()
	}
	item := reflect.TypeOf(list).Elem()
	items, _ := item.FieldByName("Items")
	kind := items.Type.Elem()
	var found []runtime.Object
	for id, obj := range objects {
		of := reflect.TypeOf(obj).Elem() == kind
		if metadata, ok := list.(*metav1.PartialObjectMetadataList); ok && metadata.Kind == id.Kind+"List" {
			found = append(found, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), Generation: obj.GetGeneration(), Labels: obj.GetLabels(),
			}})
			continue
		}
		if of && o.LabelSelector.Matches(labels.Set(obj.GetLabels())) && matches(o.FieldSelector, obj) {
			found = append(found, copyOf(obj))
		}
	}
	return meta.SetList(list, found)
}

// matches returns whether the one index of the kit, on controllers, selects the object.
func matches(selector fields.Selector, obj client.Object) bool {
	if selector == nil || selector.Empty() {
		return true
	}
	controller := metav1.GetControllerOf(obj)
	return controller != nil && selector.Requirements()[0].Value == string(controller.UID)
}

func (c *cacheClient[M]) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	return c.p.request(ctx, "create", obj, func() error { return c.p.server.insert(obj) })
}

func (c *cacheClient[M]) Update(ctx context.Context, obj client.Object, _ ...client.UpdateOption) error {
	return c.p.request(ctx, "update", obj, func() error { return c.p.server.replace(obj) })
}

func (c *cacheClient[M]) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.p.request(ctx, "patch", obj, func() error { return c.p.server.patch(obj, patch, false) })
}

func (c *cacheClient[M]) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	o := client.DeleteOptions{}
	o.ApplyOptions(opts)
	return c.p.request(ctx, "delete", obj, func() error { return c.p.server.end(obj, o.Preconditions) })
}

func (c *cacheClient[M]) Status() client.SubResourceWriter { return statusWriter[M]{p: c.p} }

type statusWriter[M driver.Object] struct {
	client.SubResourceWriter
	p *Process[M]
}

func (s statusWriter[M]) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.p.request(ctx, "patch status", obj, func() error { return s.p.server.patch(obj, patch, true) })
}

// directReader reads from the API server itself.
type directReader[M driver.Object] struct {
	client.Reader
	p *Process[M]
}

func (r *directReader[M]) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetName(key.Name)
	return r.p.request(ctx, "get", obj, func() error {
		found := r.p.server.Get(IDOf(obj))
		if found == nil {
			return apierrors.NewNotFound(IDOf(obj).resource(), key.Name)
		}
		copyInto(found, obj)
		return nil
	})
}

func (r *directReader[M]) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if ctx.Err() != nil || r.p.Dead() {
		return context.Canceled
	}
	r.p.w.count("list " + reflect.TypeOf(list).Elem().Name())
	r.p.w.Lock()
	defer r.p.w.Unlock()
	return fill(list, r.p.server.objects, opts)
}

// errLost is what a client has of a request whose answer is lost.
var errLost = errors.New("the connection to the API server was lost")

// request sends a request to the API server, with what goes wrong with it.
func (p *Process[M]) request(ctx context.Context, verb string, obj client.Object, effect func() error) error {
	id := IDOf(obj)
	what := verb + " " + id.Kind
	if p.Dead() {
		return context.Canceled
	}
	p.w.count(what)
	d := p.w.Random.Draw(p.name + what)
	fate := p.w.ofRequest(verb, d)
	before, after := latency(d), latency(d)
	if fate == "slow" {
		before += time.Duration(d.Int64N(int64(40 * time.Second)))
	}
	crash := p.w.crashes(d)
	if takesOver := d.Float64() < p.w.Chaos.TakeOver; takesOver && verb == "patch" && p.w.Chaos.On() {
		p.w.Fault("another process takes over at a write")
		p.w.TakeOver(d)
	}
	if crash == "before" {
		p.Crash("before " + what)
		return context.Canceled
	}
	if !wait(ctx, before) && d.IntN(2) == 0 {
		return ctx.Err() // The request is lost with the process, else it has left it.
	}
	if err := refusalOf(fate, id); err != nil {
		p.w.Log("%s: %s is refused: %v", p.name, what, err)
		return err
	}
	if fate == "lostRequest" {
		return errLost
	}
	copied := copyOf(obj)
	err := p.w.denial(verb, obj)
	if err == nil {
		err = effect()
	}
	if verb != "get" {
		p.w.Log("%s: %s: %v", p.name, what, err)
	}
	if crash == "after" {
		p.Crash("after " + what)
	}
	if !wait(ctx, after) || fate == "lostAnswer" {
		copyInto(copied, obj)
		p.w.Log("%s: the answer to %s is lost", p.name, what)
		return errLost
	}
	return err
}

// denial is the answer of an API server whose policy denies a request; nil if none does.
func (w *World[M]) denial(verb string, obj client.Object) error {
	if w.Deny == nil {
		return nil
	}
	why := w.Deny(verb, obj)
	if why == "" {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: obj.GetName() + " is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: " + why,
	}}
}

// refusalOf is the error of a request that is refused.
func refusalOf(fate string, id ID) error {
	switch fate {
	case "forbidden":
		return apierrors.NewForbidden(id.resource(), id.Name, errors.New("by a policy"))
	case "conflict":
		return apierrors.NewConflict(id.resource(), id.Name, errors.New("made up"))
	case "invalid":
		return apierrors.NewInvalid(schema.GroupKind{Kind: id.Kind}, id.Name, nil)
	case "internal":
		return apierrors.NewInternalError(errors.New("failed calling webhook"))
	case "busy":
		return apierrors.NewTooManyRequests("later", 1)
	}
	return nil
}

// wait returns false if the context ends before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
