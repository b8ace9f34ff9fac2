package machine

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/core/index"
)

type workQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// toRivals wakes the other Machines with the provider ID of a Machine when something has changed that decides whose it is.
// Machines of other cores count, so there is no filter. Nearly all Machines have no rivals: that costs a look into the index.
func (r *Reconciler) toRivals() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workQueue) {
			before, ok := e.ObjectOld.(*clusterv1.Machine)
			after, ok2 := e.ObjectNew.(*clusterv1.Machine)
			if !ok || !ok2 || !identityChanged(before, after) {
				return
			}
			r.wakeRivals(ctx, queue, after.UID, before.Spec.ProviderID)
			if after.Spec.ProviderID != before.Spec.ProviderID {
				r.wakeRivals(ctx, queue, after.UID, after.Spec.ProviderID)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workQueue) {
			if m, ok := e.Object.(*clusterv1.Machine); ok {
				r.wakeRivals(ctx, queue, m.UID, m.Spec.ProviderID)
			}
		},
	}
}

// identityChanged says whether an update may change whose a provider ID is.
func identityChanged(before, after *clusterv1.Machine) bool {
	const infrastructure = clusterv1.MachineInfrastructureReadyCondition
	if lostToAnother(before) != lostToAnother(after) {
		// It knows of a rival that may not know of it: their connections come up one after the other.
		return true
	}
	return before.Spec.ProviderID != after.Spec.ProviderID ||
		before.Spec.ClusterName != after.Spec.ClusterName ||
		before.Spec.InfrastructureRef != after.Spec.InfrastructureRef ||
		before.Status.NodeRef != after.Status.NodeRef ||
		ptr.Deref(before.Status.Initialization.InfrastructureProvisioned, false) != ptr.Deref(after.Status.Initialization.InfrastructureProvisioned, false) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		reasonOf(before.Status.Conditions, infrastructure) != reasonOf(after.Status.Conditions, infrastructure)
}

func (r *Reconciler) wakeRivals(ctx context.Context, queue workQueue, uid types.UID, providerID string) {
	if providerID == "" {
		return
	}
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{index.ProviderID: providerID}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Finding other Machines with a provider ID")
		return
	}
	for i := range list.Items {
		if list.Items[i].UID != uid {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
}
