package behaviour

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seen is one version of an object.
type seen struct {
	*unstructured.Unstructured
	at time.Time
	// gone is true for the last version of a deleted object.
	gone bool
}

// recorder records every version of the objects of a kind in a namespace: rules must hold at all times, and polling
// would miss short violations.
type recorder struct {
	mu       sync.Mutex
	versions map[string][]seen
	changed  chan struct{}
}

func newRecorder() *recorder {
	return &recorder{versions: map[string][]seen{}, changed: make(chan struct{})}
}

// run watches until the context ends. started is closed when the first list is read.
func (r *recorder) run(ctx context.Context, c client.WithWatch, kind schema.GroupVersionKind, namespace string, started chan<- error) {
	first := true
	for ctx.Err() == nil {
		err := r.watch(ctx, c, kind, namespace, func() {
			if first {
				first = false
				started <- nil
			}
		})
		if first && err != nil {
			started <- err
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (r *recorder) watch(ctx context.Context, c client.WithWatch, kind schema.GroupVersionKind, namespace string, listed func()) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	r.replace(list.Items)
	version := list.GetResourceVersion()
	list.Items = nil
	watcher, err := c.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	listed()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return nil
		}
		switch event.Type {
		case watch.Added, watch.Modified:
			r.add(object, false)
		case watch.Deleted:
			r.add(object, true)
		}
	}
	return nil
}

// replace applies a list: what is not in it is gone.
func (r *recorder) replace(objects []unstructured.Unstructured) {
	listed := map[string]bool{}
	for i := range objects {
		listed[objects[i].GetName()] = true
		r.add(&objects[i], false)
	}
	r.mu.Lock()
	var missing []*unstructured.Unstructured
	for name, versions := range r.versions {
		if last := versions[len(versions)-1]; !listed[name] && !last.gone {
			missing = append(missing, last.Unstructured)
		}
	}
	r.mu.Unlock()
	for _, object := range missing {
		r.add(object, true)
	}
}

func (r *recorder) add(object *unstructured.Unstructured, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	versions := r.versions[object.GetName()]
	if n := len(versions); n > 0 && !gone && !versions[n-1].gone && versions[n-1].GetResourceVersion() == object.GetResourceVersion() {
		return
	}
	r.versions[object.GetName()] = append(versions, seen{object, time.Now(), gone})
	close(r.changed)
	r.changed = make(chan struct{})
}

// of returns the versions of an object, and a channel that is closed when any object changes.
func (r *recorder) of(name string) ([]seen, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]seen(nil), r.versions[name]...), r.changed
}

// await waits until the condition holds for the versions of an object, which are nil before it exists, and reports whether it did.
func (r *recorder) await(ctx context.Context, timeout time.Duration, name string, condition func([]seen) bool) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		versions, changed := r.of(name)
		if condition(versions) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-timer.C:
			versions, _ = r.of(name)
			return condition(versions)
		}
	}
}
