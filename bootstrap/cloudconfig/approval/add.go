package approval

import (
	"context"
	"strings"

	"github.com/pkg/errors"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/fields"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"k8s.io/client-go/util/workqueue"

	"millwright.dev/bootstrap/cloudconfig/target"
)

const (
	name      = "cloudconfig-approval"
	watchName = "cloudconfig-approval-watch"

	// hashIndex finds a Machine by the hash in the group of its join token, nodeIndex by its Node.
	hashIndex = "millwright.cloudconfig.hash"
	nodeIndex = "millwright.cloudconfig.node"
)

// CacheOptions restrict the cache of a target cluster to the requests that matter here.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&certificatesv1.CertificateSigningRequest{}: {
			Field: fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeAPIServerClientKubeletSignerName),
		},
	}
}

// SetupWithManager starts two controllers with the manager: one for requests, and one that watches the
// requests of each target cluster as soon as it is connected.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, connections clustercache.ClusterCache, options controller.TypedOptions[Request]) error {
	indexer := mgr.GetFieldIndexer()
	if err := indexer.IndexField(ctx, &clusterv1.Machine{}, hashIndex, indexHash); err != nil {
		return errors.Wrap(err, "indexing Machines by hash")
	}
	if err := indexer.IndexField(ctx, &clusterv1.Machine{}, nodeIndex, indexNode); err != nil {
		return errors.Wrap(err, "indexing Machines by Node")
	}
	options.Reconciler = r
	approver, err := controller.NewTyped(name, mgr, options)
	if err != nil {
		return errors.Wrap(err, "setting up the controller of certificate signing requests")
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(watchName).
		WatchesRawSource(connections.GetClusterSource(watchName, onlyThis)).
		Complete(&watcher{connections: connections, approver: approver})
	return errors.Wrap(err, "setting up the watch of certificate signing requests")
}

func onlyThis(_ context.Context, cluster client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(cluster)}}
}

func indexHash(object client.Object) []string {
	machine, ok := object.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	return []string{target.NamesFor(machine.Namespace, machine.Spec.ClusterName, machine.Name).Hash}
}

func indexNode(object client.Object) []string {
	machine, ok := object.(*clusterv1.Machine)
	if !ok || !machine.Status.NodeRef.IsDefined() {
		return nil
	}
	return []string{machine.Status.NodeRef.Name}
}

// nodeOf returns the name of the Node that a user is.
func nodeOf(username string) (string, bool) {
	return strings.CutPrefix(username, nodeUserPrefix)
}

// watcher watches the requests of a target cluster after every connection, which ends earlier watches.
type watcher struct {
	connections clustercache.ClusterCache
	approver    controller.TypedController[Request]
}

// Reconcile starts the watch, once for each connection.
func (w *watcher) Reconcile(ctx context.Context, req ctrl.Request) (reconcile.Result, error) {
	watch := clustercache.NewWatcher(clustercache.TypedWatcherOptions[client.Object, Request]{
		Name: name, Watcher: w.approver, Kind: &certificatesv1.CertificateSigningRequest{},
		EventHandler: requestsOf(req.NamespacedName),
		Predicates:   []predicate.TypedPredicate[client.Object]{ofInterest()},
	})
	return reconcile.Result{}, ignoreDisconnected(w.connections.Watch(ctx, req.NamespacedName, watch))
}

// requestsOf maps events of one target cluster to Requests. Deletions need nothing.
func requestsOf(cluster client.ObjectKey) handler.TypedEventHandler[client.Object, Request] {
	type queue = workqueue.TypedRateLimitingInterface[Request]
	return handler.TypedFuncs[client.Object, Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], q queue) {
			q.Add(Request{Cluster: cluster, Name: e.Object.GetName()})
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], q queue) {
			q.Add(Request{Cluster: cluster, Name: e.ObjectNew.GetName()})
		},
	}
}

// ofInterest lets undecided requests of kubelets pass.
func ofInterest() predicate.TypedPredicate[client.Object] {
	return predicate.NewTypedPredicateFuncs(func(object client.Object) bool {
		csr, ok := object.(*certificatesv1.CertificateSigningRequest)
		return ok && undecided(csr)
	})
}
