package standin

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
)

const (
	// again is the delay after which a stand-in reconciles again what takes time.
	again = 20 * time.Millisecond
	// touched is an annotation of the suite without meaning; when it changes, stand-ins break rules about what must not change.
	touched = "conformance.millwright.dev/touched"
	// finalizer blocks the removal of an object until its machine is gone.
	finalizer = Group + "/machine"
)

// about are the rules that both kinds have, with the numbers of one kind.
type about struct{ byCluster, byAnnotation, condition, resumes, has, current rules.ID }

// reconciler is what both controllers share.
type reconciler struct {
	Switches
	rules    about
	client   client.Client
	kind     schema.GroupVersionKind
	contract version.Contract

	mu sync.Mutex
	// memory is state that is lost when the process ends, by object.
	memory map[string]string
}

func (r *reconciler) remember(key, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory[key] = value
}

func (r *reconciler) recall(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory[key]
}

// pause handles a paused object, and reports whether the reconcile ends here.
func (r *reconciler) pause(ctx context.Context, o *object, cluster *clusterv1.Cluster) (bool, error) {
	paused, key := r.paused(o, cluster), "paused/"+string(o.GetUID())
	if r.breaks(r.rules.resumes) && (paused || r.recall(key) != "") {
		r.remember(key, "forever")
		if !paused {
			return true, nil
		}
	}
	if r.breaks(r.rules.condition) {
		return paused, nil
	}
	if !paused {
		o.condition(clusterv1.PausedCondition, metav1.ConditionFalse, "NotPaused", "")
		return false, nil
	}
	o.condition(clusterv1.PausedCondition, metav1.ConditionTrue, "Paused", "paused by Cluster or annotation")
	return true, o.save(ctx)
}

// ready sets condition Ready, unless the rule that it exists or is up to date is broken.
func (r *reconciler) ready(o *object, status metav1.ConditionStatus, reason, message string) {
	if r.breaks(r.rules.has) {
		return
	}
	if r.breaks(r.rules.current) && reason == "Made" {
		status, reason, message = metav1.ConditionFalse, "Waiting", "waits"
	}
	if r.breaks(r.rules.current) && reason == "Deleting" {
		return
	}
	o.condition(clusterv1.ReadyCondition, status, reason, message)
}

// setup adds a controller that reconciles objects of the kind, also when their Machine or Cluster changes.
func (r *reconciler) setup(mgr ctrl.Manager, name string, reconciler reconcile.Reconciler) error {
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(r.kind)
	skip := true
	return ctrl.NewControllerManagedBy(mgr).Named(name).For(kind).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(sameCluster(r))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(sameCluster(r))).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, SkipNameValidation: &skip}).
		Complete(reconciler)
}

// sameCluster maps a Cluster, or a Machine, to the objects of the Cluster.
func sameCluster(r *reconciler) handler.MapFunc {
	return func(ctx context.Context, changed client.Object) []reconcile.Request {
		name := changed.GetName()
		if machine, is := changed.(*clusterv1.Machine); is {
			name = machine.Spec.ClusterName
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
		match := client.MatchingLabels{clusterv1.ClusterNameLabel: name}
		if err := r.client.List(ctx, list, client.InNamespace(changed.GetNamespace()), match); err != nil {
			return nil
		}
		var requests []reconcile.Request
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	}
}
