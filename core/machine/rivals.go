package machine

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/core/index"
)

// toRivals enqueues other Machines when something of a Machine has changed that decides about them: those with its provider ID, whose
// it is; those that claim a Node whose name is that Machine's now, or is not any more; and those of a control plane that are being
// deleted, which may be the last. Machines of other cores count, so there is no filter. Nearly all Machines have no rivals: that costs a
// read of the index.
func (r *Reconciler) toRivals() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workQueue) {
			if m, ok := e.Object.(*clusterv1.Machine); ok && !e.IsInInitialList {
				r.enqueueClaimants(ctx, queue, m, nodeNames(m))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workQueue) {
			before, ok := e.ObjectOld.(*clusterv1.Machine)
			after, ok2 := e.ObjectNew.(*clusterv1.Machine)
			if !ok || !ok2 {
				return
			}
			if identityChanged(before, after) {
				r.enqueueRivals(ctx, queue, after.UID, before.Spec.ProviderID)
				if after.Spec.ProviderID != before.Spec.ProviderID {
					r.enqueueRivals(ctx, queue, after.UID, after.Spec.ProviderID)
				}
			}
			r.enqueueClaimants(ctx, queue, after, namesChanged(before, after))
			if staysInControlPlane(before) && !staysInControlPlane(after) {
				r.enqueueControlPlane(ctx, queue, after)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workQueue) {
			m, ok := e.Object.(*clusterv1.Machine)
			if !ok {
				return
			}
			r.enqueueRivals(ctx, queue, m.UID, m.Spec.ProviderID)
			r.enqueueClaimants(ctx, queue, m, nodeNames(m))
			if staysInControlPlane(m) {
				r.enqueueControlPlane(ctx, queue, m)
			}
		},
	}
}

func (r *Reconciler) enqueueRivals(ctx context.Context, queue workQueue, uid types.UID, providerID string) {
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

// enqueueClaimants enqueues the other Machines with the provider IDs of the Nodes of these names: whether they are theirs depends on
// whether the names are that Machine's. Of several Nodes that a Machine could not choose from only one may be left.
func (r *Reconciler) enqueueClaimants(ctx context.Context, queue workQueue, m *clusterv1.Machine, names []string) {
	if len(names) == 0 {
		return
	}
	connection, err := r.Connections.Get(types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ClusterName})
	if err != nil {
		// All Machines of that Cluster are enqueued when there is one.
		return
	}
	for _, name := range names {
		if node, err := connection.Node(name); err == nil && node != nil {
			r.enqueueRivals(ctx, queue, m.UID, node.Spec.ProviderID)
		}
	}
}

// nodeNames are the names of Nodes that are a Machine's by all appearances, see machineOfNodeName.
func nodeNames(m *clusterv1.Machine) []string {
	names := append(index.HostNames(m), m.Name)
	if m.Status.NodeRef.IsDefined() {
		names = append(names, m.Status.NodeRef.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// namesChanged are the names of Nodes that a Machine has given up or taken.
func namesChanged(before, after *clusterv1.Machine) []string {
	if before.Status.NodeRef == after.Status.NodeRef && slices.Equal(before.Status.Addresses, after.Status.Addresses) {
		return nil
	}
	had, has := nodeNames(before), nodeNames(after)
	without := func(names, others []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
	}
	return append(without(had, has), without(has, had)...)
}

// staysInControlPlane reports whether a Machine is one of a control plane and not being deleted.
func staysInControlPlane(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok && m.DeletionTimestamp.IsZero()
}

// enqueueControlPlane enqueues the other Machines of a control plane that are being deleted: when none stays, they do not drain (see
// endsWithTarget).
func (r *Reconciler) enqueueControlPlane(ctx context.Context, queue workQueue, m *clusterv1.Machine) {
	for _, request := range r.deletingOf(ctx, client.InNamespace(m.Namespace), client.MatchingFields{index.Cluster: m.Spec.ClusterName},
		client.HasLabels{clusterv1.MachineControlPlaneLabel}) {
		if request.Name != m.Name {
			queue.Add(request)
		}
	}
}
