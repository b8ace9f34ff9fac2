package cluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reportDelay is how old the sums in the status of a Cluster may be. All that changes in that time is one reconcile and
// at most one write, so that a rollout of a thousand Machines is not a thousand writes of the Cluster.
const reportDelay = 5 * time.Second

// reporting enqueues the Cluster of an object after reportDelay. What comes meanwhile is the same entry of the queue.
func reporting(clusterOf func(client.Object) types.NamespacedName) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(obj client.Object, q queue) {
		if key := clusterOf(obj); key.Name != "" {
			q.AddAfter(reconcile.Request{NamespacedName: key}, reportDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}

// clusterOf is the Cluster that an object reports to; none for what somebody else reports on, as a MachineSet of a
// MachineDeployment and the Machines of a MachineSet.
func clusterOf(obj client.Object) types.NamespacedName {
	owner := metav1.GetControllerOf(obj)
	var name string
	switch typed := obj.(type) {
	case *clusterv1.MachineDeployment:
		name = typed.Spec.ClusterName
	case *clusterv1.MachineSet:
		if owner == nil {
			name = typed.Spec.ClusterName
		}
	case *clusterv1.Machine:
		if owner == nil || owner.Kind != "MachineSet" {
			name = typed.Spec.ClusterName
		}
	}
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}
}

// reportChanged lets those updates pass that change what an object reports, or to whom.
func reportChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if was, is := clusterOf(e.ObjectOld).Name, clusterOf(e.ObjectNew).Name; was != is || is == "" {
			return was != is
		}
		switch after := e.ObjectNew.(type) {
		case *clusterv1.MachineDeployment:
			before, ok := e.ObjectOld.(*clusterv1.MachineDeployment)
			return !ok || before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Status, after.Status)
		case *clusterv1.MachineSet:
			before, ok := e.ObjectOld.(*clusterv1.MachineSet)
			return !ok || before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Status, after.Status)
		case *clusterv1.Machine:
			before, ok := e.ObjectOld.(*clusterv1.Machine)
			return !ok || !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
		}
		return false
	}}
}
