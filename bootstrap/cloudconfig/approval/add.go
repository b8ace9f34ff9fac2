package approval

import (
	"context"
	"strings"

	"github.com/pkg/errors"
	certificatesv1 "k8s.io/api/certificates/v1"
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
	"millwright.dev/contracts/controller/bulkhead"
)

const (
	name      = "cloudconfig-approval"
	watchName = "cloudconfig-approval-watch"
	// servingName is the controller of requests for serving certificates.
	servingName = "cloudconfig-serving-approval"

	// hashIndex finds a Machine by the hash in the group of its join token, nodeIndex by its Node.
	hashIndex = "millwright.cloudconfig.hash"
	nodeIndex = "millwright.cloudconfig.node"
)

// maxRequest is the size, in bytes, up to which a certificate request is kept in the cache and looked at. Kubelets' have less than one KiB.
const maxRequest = 16 << 10

// CacheOptions keep in the cache of a target cluster what matters here of requests. Those of the two signers of kubelets are
// kept until they are decided, unless they are too large to be a kubelet's; a watch cannot select two, hence of all else a shell is kept.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&certificatesv1.CertificateSigningRequest{}: {Transform: trim}}
}

// trim removes from a request what nothing is decided upon.
func trim(object any) (any, error) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return object, nil
	}
	csr.ManagedFields, csr.Spec.Extra = nil, nil
	shell := !ofKubelet(csr) || !undecided(csr)
	if shell || len(csr.Spec.Request) > maxRequest {
		csr.Spec.Request = nil
	}
	if shell || sizeOf(csr.Annotations) > maxRequest {
		csr.Annotations = nil
	}
	if len(csr.Status.Certificate) > 0 {
		// That there is one matters, not which.
		csr.Status.Certificate = []byte("-")
	}
	return csr, nil
}

func sizeOf(annotations map[string]string) int {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}

func ofKubelet(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName || csr.Spec.SignerName == certificatesv1.KubeletServingSignerName
}

// SetupWithManager starts three controllers with the manager: one for each signer's requests, and one that watches the
// requests of each target cluster as soon as it is connected. A quarter of the workers is the share of one Cluster.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, connections clustercache.ClusterCache, options controller.TypedOptions[Request]) error {
	indexer := mgr.GetFieldIndexer()
	if err := indexer.IndexField(ctx, &clusterv1.Machine{}, hashIndex, indexHash); err != nil {
		return errors.Wrap(err, "indexing Machines by hash")
	}
	if err := indexer.IndexField(ctx, &clusterv1.Machine{}, nodeIndex, indexNode); err != nil {
		return errors.Wrap(err, "indexing Machines by Node")
	}
	options.Reconciler = r
	r.refusals = &refusals{}
	r.turns = bulkhead.ForWorkers[client.ObjectKey](options.MaxConcurrentReconciles)
	approver, err := controller.NewTyped(name, mgr, options)
	if err != nil {
		return errors.Wrap(err, "setting up the controller of certificate signing requests")
	}
	options.Reconciler = &servingReconciler{r}
	serving, err := controller.NewTyped(servingName, mgr, options)
	if err != nil {
		return errors.Wrap(err, "setting up the controller of requests for serving certificates")
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(watchName).
		WatchesRawSource(connections.GetClusterSource(watchName, onlyThis)).
		Complete(&watcher{connections: connections, approver: approver, serving: serving})
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
	if !ok || machine.Status.NodeRef.Name != machine.Name {
		// A Node of another name is not the Machine's.
		return nil
	}
	return []string{machine.Name}
}

// nodeOf returns the name of the Node that a user is.
func nodeOf(username string) (string, bool) {
	return strings.CutPrefix(username, nodeUserPrefix)
}

// watcher watches the requests of a target cluster after every connection, which ends earlier watches.
type watcher struct {
	connections       clustercache.ClusterCache
	approver, serving controller.TypedController[Request]
}

// Reconcile starts the watches, once for each connection; both are of one informer.
func (w *watcher) Reconcile(ctx context.Context, req ctrl.Request) (reconcile.Result, error) {
	for _, of := range []struct {
		name, signer string
		controller   controller.TypedController[Request]
	}{
		{name, certificatesv1.KubeAPIServerClientKubeletSignerName, w.approver},
		{servingName, certificatesv1.KubeletServingSignerName, w.serving},
	} {
		watch := clustercache.NewWatcher(clustercache.TypedWatcherOptions[client.Object, Request]{
			Name: of.name, Watcher: of.controller, Kind: &certificatesv1.CertificateSigningRequest{},
			EventHandler: requestsOf(req.NamespacedName),
			Predicates:   []predicate.TypedPredicate[client.Object]{concerningOf(of.signer)},
		})
		if err := w.connections.Watch(ctx, req.NamespacedName, watch); err != nil {
			return reconcile.Result{}, ignoreDisconnected(err)
		}
	}
	return reconcile.Result{}, nil
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

// concerningOf lets undecided requests for a signer pass, and those for first certificates when they are decided as well: the
// conditions of their CloudConfigs say so.
func concerningOf(signer string) predicate.TypedPredicate[client.Object] {
	return predicate.NewTypedPredicateFuncs(func(object client.Object) bool {
		csr, ok := object.(*certificatesv1.CertificateSigningRequest)
		if !ok || csr.Spec.SignerName != signer {
			return false
		}
		_, first := target.NamesOfJoinGroups(csr.Spec.Groups)
		return undecided(csr) || first && signer == certificatesv1.KubeAPIServerClientKubeletSignerName
	})
}
