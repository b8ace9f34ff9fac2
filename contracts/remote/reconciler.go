package remote

import (
	"context"
	"sync"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/predicates"
)

// Reconciler begins and ends connections as Clusters come and go. It never waits for one, so no cluster delays another.
type Reconciler struct {
	// Client reads Clusters from the cache.
	Client client.Client
	// Connections is what is kept in step.
	Connections *Connections
	// WatchFilter restricts the controller to Clusters with this value of the watch label; "" is all.
	WatchFilter string
	// WatchSecrets has changed kubeconfigs noticed at once. It takes the right to list and watch all Secrets; managers without it
	// set Options.KubeconfigInterval.
	WatchSecrets bool

	// uids has the UID of each Cluster that is to be connected, by name.
	uids sync.Map
}

// Reconcile connects once the Cluster has infrastructure, and disconnects when the Cluster is gone. A Cluster
// that is being deleted stays connected, since its Nodes are drained and deleted first. One that replaces another of its name begins
// without the connection of that: its kubeconfig may be yet to come.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, request.NamespacedName, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.disconnect(request.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, errors.Wrapf(err, "reading Cluster %s", request)
	}
	if before, known := r.uids.Load(request.NamespacedName); known && before != cluster.UID {
		r.disconnect(request.NamespacedName)
	}
	switch {
	case !predicates.MatchesWatchLabel(r.WatchFilter, cluster):
		// It is another manager's, perhaps since a moment ago.
		r.disconnect(request.NamespacedName)
	case ready(cluster):
		r.uids.Store(request.NamespacedName, cluster.UID)
		r.Connections.Ensure(ctx, request.NamespacedName)
	}
	return ctrl.Result{}, nil
}

// disconnect ends the connection to a Cluster, and notifies those who have subscribed: what they have asked over it is not answered.
func (r *Reconciler) disconnect(cluster types.NamespacedName) {
	_, known := r.uids.LoadAndDelete(cluster)
	r.Connections.Remove(cluster)
	if known {
		r.Connections.notify(cluster)
	}
}

// ready reports whether a kubeconfig can be expected to work: there is nothing to wait for without infrastructure.
func ready(cluster *clusterv1.Cluster) bool {
	return !cluster.Spec.InfrastructureRef.IsDefined() || ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false)
}

// ofKubeconfig maps a kubeconfig Secret to its Cluster.
func ofKubeconfig(_ context.Context, secret client.Object) []reconcile.Request {
	cluster, ok := clusterOf(secret.GetName())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: cluster}}}
}
