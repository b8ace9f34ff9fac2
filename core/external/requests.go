package external

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/core/index"
)

// ToReferrers maps an event of a provider's object to the objects that refer to it, found by name and by index.
// Owner references would not do: an object that a user has created has none before it is adopted.
// newList returns an empty list of the referrers' kind.
func ToReferrers(reader client.Reader, newList func() client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return Referrers(ctx, reader, newList, obj)
	})
}

// Referrers finds the objects of the list's kind that refer to a provider's object.
func Referrers(ctx context.Context, reader client.Reader, newList func() client.ObjectList, obj client.Object) []reconcile.Request {
	gvk := obj.GetObjectKind().GroupVersionKind()
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: gvk.Group, Kind: gvk.Kind, Name: obj.GetName()}
	found := requests(ctx, reader, newList(), client.InNamespace(obj.GetNamespace()),
		client.MatchingFields{index.Reference: index.ReferenceValue(ref)})
	if namesake := sameName(ctx, reader, newList(), client.ObjectKeyFromObject(obj)); namesake != nil && index.Refers(namesake, ref) {
		found = append(found, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(namesake)})
	}
	return found
}

// sameName reads the object of the list's kind that has that name; nil when there is none.
func sameName(ctx context.Context, reader client.Reader, list client.ObjectList, key client.ObjectKey) client.Object {
	var obj client.Object
	switch list.(type) {
	case *clusterv1.MachineList:
		obj = &clusterv1.Machine{}
	case *clusterv1.ClusterList:
		obj = &clusterv1.Cluster{}
	default:
		return nil
	}
	err := reader.Get(ctx, key, obj, &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)})
	if err != nil {
		if !apierrors.IsNotFound(err) {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to find the objects that an event concerns")
		}
		return nil
	}
	return obj
}

// ToReferrersOfCRD maps an event of a CRD to the objects that refer to any object of its kind.
func ToReferrersOfCRD(reader client.Reader, newList func() client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, crd client.Object) []reconcile.Request {
		return requests(ctx, reader, newList(), client.MatchingFields{index.ReferenceCRD: crd.GetName()})
	})
}

func requests(ctx context.Context, reader client.Reader, list client.ObjectList, options ...client.ListOption) []reconcile.Request {
	if err := reader.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to find the objects that an event concerns")
		return nil
	}
	return Requests(list)
}

// Requests returns a request for each object of a list.
func Requests(list client.ObjectList) []reconcile.Request {
	switch typed := list.(type) {
	case *clusterv1.MachineList:
		return each(typed.Items)
	case *clusterv1.ClusterList:
		return each(typed.Items)
	}
	return nil
}

// each returns the requests for a slice of objects.
func each[T any, O interface {
	*T
	client.Object
}](items []T) []reconcile.Request {
	list := make([]reconcile.Request, 0, len(items))
	for i := range items {
		list = append(list, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(O(&items[i]))})
	}
	return list
}
