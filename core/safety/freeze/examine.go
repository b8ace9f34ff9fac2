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
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"millwright.dev/contracts/controller/wake"
)

// Examiner looks for signs of a restore in each Cluster, once after a start before which no core was at work for a while, and again
// when the target cluster is connected again or an instance turns out to be gone: Nodes of Machines that are not there, and Machines
// whose instances are not. It writes nothing.
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

// SetupWithManager adds the controller to the manager.
func (e *Examiner) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	connected := wake.New()
	e.Freezer.targets.OnConnectivity(connected.Enqueue)
	err := ctrl.NewControllerManagedBy(mgr).Named("restore").WatchesRawSource(connected.Source()).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(e.clusterOf), builder.WithPredicates(instanceVanished())).
		WithOptions(options).Complete(e)
	return errors.Wrap(err, "adding the controller that looks for signs of a restore")
}

// Reconcile examines one Cluster.
func (e *Examiner) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	since, ok := e.Freezer.restorable(request.NamespacedName)
	if !ok {
		e.Freezer.examined(request.NamespacedName, "")
		return ctrl.Result{}, nil
	}
	nodes, ok := e.Nodes(request.NamespacedName)
	if !ok {
		// Its connection enqueues it.
		return ctrl.Result{}, nil
	}
	var missing []string
	for _, node := range machineless(request.NamespacedName, nodes, since) {
		gone, err := e.gone(ctx, request.Namespace, node.Annotations[clusterv1.MachineAnnotation])
		if err != nil {
			return ctrl.Result{}, err
		}
		if gone {
			missing = append(missing, node.Name)
		}
	}
	vanished, err := e.vanished(ctx, request.NamespacedName, since)
	if err != nil {
		return ctrl.Result{}, err
	}
	found := strings.Join(slices.DeleteFunc([]string{
		signs("Nodes have joined since "+stamp(since)+" as Machines that are not there", missing),
		signs("the instances of Machines are gone that were there at that time", vanished),
	}, func(sign string) bool { return sign == "" }), "; ")
	if found != "" {
		ctrl.LoggerFrom(ctx).Info("The management cluster seems to have been restored from a backup", "signs", found)
	}
	e.Freezer.examined(request.NamespacedName, found)
	return ctrl.Result{}, nil
}

// gone asks the API server whether a Machine does not exist.
func (e *Examiner) gone(ctx context.Context, namespace, name string) (bool, error) {
	machine := &metav1.PartialObjectMetadata{}
	machine.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	err := e.APIReader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, machine)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, errors.Wrapf(err, "reading Machine %s/%s", namespace, name)
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
