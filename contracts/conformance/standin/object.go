package standin

import (
	"context"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// object is a stand-in's object in one reconcile, as read and as desired.
type object struct {
	*unstructured.Unstructured
	before *unstructured.Unstructured
	client client.Client
}

// read returns the object of a key; nil if there is none.
func (r *reconciler) read(ctx context.Context, key client.ObjectKey) (*object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.kind)
	if err := r.client.Get(ctx, key, u); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &object{Unstructured: u, before: u.DeepCopy(), client: r.client}, nil
}

// save writes metadata and spec, and then the status, if they have changed: the provider ID is set before the status reports it.
func (o *object) save(ctx context.Context) error {
	status := o.Object["status"]
	if !reflect.DeepEqual(o.Object["spec"], o.before.Object["spec"]) || !reflect.DeepEqual(o.Object["metadata"], o.before.Object["metadata"]) {
		if err := o.client.Update(ctx, o.Unstructured); err != nil {
			return err
		}
		if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
			return nil
		}
	}
	if !reflect.DeepEqual(status, o.before.Object["status"]) {
		o.Object["status"] = status
		if err := o.client.Status().Update(ctx, o.Unstructured); err != nil {
			return err
		}
	}
	o.before = o.DeepCopy()
	return nil
}

func (o *object) set(value any, path ...string) {
	// All parents of the paths are objects.
	_ = unstructured.SetNestedField(o.Object, value, path...)
}

func (o *object) is(path ...string) bool {
	value, _, _ := unstructured.NestedBool(o.Object, path...)
	return value
}

// reason is that of a condition; empty if there is none.
func (o *object) reason(name string) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for i := range list {
		if entry, _ := list[i].(map[string]any); entry["type"] == name {
			reason, _ := entry["reason"].(string)
			return reason
		}
	}
	return ""
}

// condition sets a condition; its time changes with its status.
func (o *object) condition(name string, status metav1.ConditionStatus, reason, message string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	at := time.Now().UTC().Format(time.RFC3339)
	for i := range list {
		entry, _ := list[i].(map[string]any)
		if entry["type"] != name {
			continue
		}
		if entry["status"] == string(status) {
			at, _ = entry["lastTransitionTime"].(string)
		}
		list = append(list[:i], list[i+1:]...)
		break
	}
	list = append(list, map[string]any{
		"type": name, "status": string(status), "reason": reason, "message": message, "lastTransitionTime": at,
	})
	if len(list) > 1 && list[0].(map[string]any)["type"].(string) > list[1].(map[string]any)["type"].(string) {
		list[0], list[1] = list[1], list[0]
	}
	o.set(list, "status", "conditions")
}

// owner is the Machine that controls the object, or that refers to it if orphans count; nil if there is none.
func (r *reconciler) owner(ctx context.Context, o *object, orphans bool) (*clusterv1.Machine, error) {
	name := ""
	if ref := metav1.GetControllerOf(o); ref != nil && ref.Kind == "Machine" {
		name = ref.Name
	} else if orphans {
		name = o.GetName() // As the suite names them.
	}
	if name == "" {
		return nil, nil
	}
	machine := &clusterv1.Machine{}
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: name}, machine); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return machine, nil
}

// cluster is that of the object's label; nil if there is none.
func (r *reconciler) cluster(ctx context.Context, o *object) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[clusterv1.ClusterNameLabel]}
	if err := r.client.Get(ctx, key, cluster); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return cluster, nil
}

// paused reports whether the object is paused, by the Cluster or by an annotation.
func (r *reconciler) paused(o *object, cluster *clusterv1.Cluster) bool {
	byCluster := cluster != nil && ptr.Deref(cluster.Spec.Paused, false) && !r.breaks(r.rules.byCluster)
	_, annotated := o.GetAnnotations()[clusterv1.PausedAnnotation]
	byAnnotation := annotated && !r.breaks(r.rules.byAnnotation)
	return byCluster || byAnnotation
}

// conflict is no failure: the object was changed, and is reconciled again.
func conflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }
