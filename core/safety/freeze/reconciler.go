package freeze

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Examiner looks for signs of a restore in each Cluster, once after a start before which no core was at work for a while, and again
// when the target cluster is connected again or an instance turns out to be gone: Nodes of Machines that are not there, and Machines
// whose instances or Nodes are not. It writes nothing.
type Examiner struct {
	Freezer *Freezer
	// Client reads Machines from the cache.
	Client client.Reader
	// APIReader reads from the API server: that an object is missing from a cache means nothing.
	APIReader client.Reader
	// Nodes returns the Nodes of a target cluster; false while they cannot be read.
	Nodes func(cluster client.ObjectKey) ([]*corev1.Node, bool)
}

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=get;list;watch

// Reconcile examines one Cluster.
func (e *Examiner) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	since, look := e.Freezer.restorable(request.NamespacedName)
	switch look {
	case awaited:
		return ctrl.Result{}, nil
	case notNeeded:
		e.Freezer.examined(request.NamespacedName, "")
		return ctrl.Result{}, nil
	}
	nodes, ok := e.Nodes(request.NamespacedName)
	if !ok {
		// Its connection enqueues it.
		return ctrl.Result{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	lost, err := e.lost(ctx, request.NamespacedName, machineless(request.NamespacedName, nodes, since))
	vanished, err2 := e.vanished(ctx, request.NamespacedName, nodes, since)
	joined := "Nodes have joined since " + stamp(since) + " as Machines that do not exist"
	if since.IsZero() {
		joined = "Nodes have joined as Machines that do not exist, and it is not known when a core was last running"
	}
	found := strings.Join(slices.DeleteFunc([]string{
		signs(joined, lost), signs("the instances or Nodes of Machines that existed at that time are gone", vanished),
	}, func(sign string) bool { return sign == "" }), "; ")
	failed := kerrors.NewAggregate([]error{err, err2})
	if found == "" && failed != nil {
		return ctrl.Result{}, failed
	}
	if found != "" {
		ctrl.LoggerFrom(ctx).Info("The management cluster seems to have been restored from a backup", "signs", found)
	}
	e.Freezer.examined(request.NamespacedName, found)
	return ctrl.Result{}, failed
}

const (
	// examineTimeout bounds one look at a Cluster: an API server that hangs must not hold a worker.
	examineTimeout = 10 * time.Second
	// maxAsked bounds the requests of one look. A restore shows in a few Nodes as well as in thousands.
	maxAsked = 50
)

// lost are the Nodes whose Machines the API server does not have. Those that the cache has are there; of the others some are asked for.
// With an error come those that are known nevertheless.
func (e *Examiner) lost(ctx context.Context, cluster client.ObjectKey, nodes []*corev1.Node) (names []string, err error) {
	asked := 0
	for _, node := range nodes {
		key := client.ObjectKey{Namespace: cluster.Namespace, Name: node.Annotations[clusterv1.MachineAnnotation]}
		if e.Client.Get(ctx, key, &clusterv1.Machine{}, client.UnsafeDisableDeepCopy) == nil {
			continue
		}
		if asked == maxAsked {
			if len(names) == 0 {
				err = errors.Errorf("%d Machines of Cluster %s exist that the cache does not have: looking again", asked, cluster)
			}
			return names, err
		}
		asked++
		gone, failed := e.gone(ctx, key)
		if failed != nil {
			return names, failed
		}
		if gone {
			names = append(names, node.Name)
		}
	}
	return names, nil
}

// gone asks the API server whether a Machine does not exist.
func (e *Examiner) gone(ctx context.Context, key client.ObjectKey) (bool, error) {
	machine := &metav1.PartialObjectMetadata{}
	machine.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	err := e.APIReader.Get(ctx, key, machine)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, errors.Wrapf(err, "reading Machine %s", key)
}

// machineless are the Nodes that a core has linked to a Machine of the Cluster, and that have joined since the time of the backup.
// Older ones are in the backup with their Machines, or were left over then already.
func machineless(cluster client.ObjectKey, nodes []*corev1.Node, since time.Time) []*corev1.Node {
	var linked []*corev1.Node
	for _, node := range nodes {
		a := node.Annotations
		if a[clusterv1.ClusterNameAnnotation] == cluster.Name && a[clusterv1.ClusterNamespaceAnnotation] == cluster.Namespace &&
			strings.TrimSpace(a[clusterv1.MachineAnnotation]) != "" && node.CreationTimestamp.Time.After(since) {
			linked = append(linked, node)
		}
	}
	return linked
}
