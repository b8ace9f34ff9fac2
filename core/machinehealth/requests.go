package machinehealth

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/template"
	"millwright.dev/core/external"
)

// informers is where the watches come from: the cache of the management cluster.
type informers interface {
	GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error)
}

// requests watches the kinds of external remediation requests, each from when one of it was seen first: so only what is installed, and
// what may be read and created, is watched. Of each there are the metadata. A watch stays as long as the process does.
type requests struct {
	informers informers
	// gone is called with a request that is not there any more, or belongs to another controller; synced with a Cluster whose requests can be
	// looked up in the cache from now on.
	gone   func(metav1.Object)
	synced func(client.ObjectKey)

	// grace, if not zero, is for external.SyncGrace, in tests.
	grace time.Duration

	mu    sync.Mutex
	ctx   context.Context // the controller's, which waiting goroutines end with
	kinds map[schema.GroupVersionKind]*requestKind
}

// requestKind is a kind that is watched, or was to be.
type requestKind struct {
	// informer is nil when watchErr has the reason.
	informer cache.Informer
	watchErr string
	since    time.Time
	// clusters wait for the informer.
	clusters map[client.ObjectKey]bool
}

// begin sets what waiting goroutines end with.
func (q *requests) begin(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ctx = ctx
}

// watch sees to it that a kind is watched, and reports whether all its objects are in the cache; if not, the Cluster is looked at when
// they are.
func (q *requests) watch(gvk schema.GroupVersionKind, cluster client.ObjectKey, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.informers == nil || q.ctx == nil {
		return false
	}
	kind := q.kinds[gvk]
	if kind == nil {
		kind = &requestKind{since: now, clusters: map[client.ObjectKey]bool{}}
		if q.kinds == nil {
			q.kinds = map[schema.GroupVersionKind]*requestKind{}
		}
		q.kinds[gvk] = kind
	}
	if kind.informer == nil {
		q.start(gvk, kind)
	}
	if kind.informer == nil {
		return false
	}
	if kind.informer.HasSynced() {
		return true
	}
	kind.clusters[cluster] = true
	return false
}

// start begins to watch a kind, or notes why it cannot be watched: it is tried again when a request is looked for again. The mutex is held.
func (q *requests) start(gvk schema.GroupVersionKind, kind *requestKind) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	informer, err := q.informers.GetInformer(q.ctx, object, cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(q.handler())
	}
	if err != nil {
		kind.watchErr = err.Error()
		return
	}
	kind.informer, kind.watchErr = informer, ""
	go q.await(q.ctx, kind)
}

// handler calls gone for what may be a request that has to be created again. What its controller reports of it enqueues nothing.
func (q *requests) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			was, ok := before.(metav1.Object)
			is, ok2 := after.(metav1.Object)
			if ok && ok2 && !equality.Semantic.DeepEqual(was.GetOwnerReferences(), is.GetOwnerReferences()) {
				q.gone(is)
			}
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if request, ok := object.(metav1.Object); ok {
				q.gone(request)
			}
		},
	}
}

// await enqueues the Clusters that wait for a kind once its objects have been read.
func (q *requests) await(ctx context.Context, kind *requestKind) {
	if !toolscache.WaitForCacheSync(ctx.Done(), kind.informer.HasSynced) {
		return
	}
	q.mu.Lock()
	waiting := kind.clusters
	kind.clusters = map[client.ObjectKey]bool{}
	q.mu.Unlock()
	for cluster := range waiting {
		q.synced(cluster)
	}
}

// watchError is why requests of a kind are only looked for once in a while; "" while they are watched, while nothing is known of them, and
// while their reading may take its time: until says when that is over.
func (q *requests) watchError(gvk schema.GroupVersionKind, now time.Time) (reason string, until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	kind := q.kinds[gvk]
	switch {
	case kind == nil || kind.informer != nil && kind.informer.HasSynced():
		return "", time.Time{}
	case kind.watchErr != "":
		return kind.watchErr, time.Time{}
	}
	if until = kind.since.Add(cmp.Or(q.grace, external.SyncGrace)); now.Before(until) {
		return "", until
	}
	return "check that the core's ClusterRole may list and watch them", time.Time{}
}

// requestKindOf is the kind of the requests of a MachineHealthCheck.
func requestKindOf(check *clusterv1.MachineHealthCheck) schema.GroupVersionKind {
	gvk := check.Spec.Remediation.TemplateRef.GroupVersionKind()
	gvk.Kind = strings.TrimSuffix(gvk.Kind, template.Suffix)
	return gvk
}

// inCache reports whether the request for a Machine is there, by the cache; ok is false while that does not know.
func (r *Reconciler) inCache(ctx context.Context, s *round, t *target, by *check) (there, ok bool, err error) {
	if !r.requests.watch(requestKindOf(by.MachineHealthCheck), s.key, s.now) {
		return false, false, nil
	}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(requestKindOf(by.MachineHealthCheck))
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(t.Machine), found)
	return err == nil && ownedBy(found, t.Machine), true, client.IgnoreNotFound(err)
}

// recordUnwatched reports on MachineHealthChecks whose requests are not watched why they are not.
func (r *Reconciler) recordUnwatched(s *round) {
	for _, c := range s.checks {
		if !c.own || !c.Spec.Remediation.TemplateRef.IsDefined() {
			continue
		}
		gvk := requestKindOf(c.MachineHealthCheck)
		reason, until := r.requests.watchError(gvk, s.now)
		s.wakeAt(until)
		if reason != "" {
			c.result.Unwatched = fmt.Sprintf("%s cannot be watched, so one that is deleted is missed only after %s: %s", gvk.Kind, r.recheckAfter(), reason)
		}
	}
}

// onGone enqueues the Cluster of a Machine whose request is deleted, or no longer its own.
func (r *Reconciler) onGone(request metav1.Object) {
	machine := &clusterv1.Machine{}
	key := client.ObjectKey{Namespace: request.GetNamespace(), Name: request.GetName()}
	if err := r.Client.Get(r.requests.ctx, key, machine, &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)}); err != nil {
		// Without a Machine there is nothing to make a request for.
		return
	}
	cluster := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
	if r.memory.isActive(cluster) {
		r.wake(cluster, pace)
	}
}
