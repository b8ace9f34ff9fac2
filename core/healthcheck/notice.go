// Package healthcheck says of MachineHealthChecks that nothing acts on them. New ones are refused by admission; those of an
// earlier core, and those that come into force where admission does not see it, are met here, since their users believe that
// their Machines are watched.
package healthcheck

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
)

// ReasonNotSupported is the reason of the event.
const ReasonNotSupported = "NotSupported"

// Notice records an event on each MachineHealthCheck in force: once in the life of the process, and when it comes into force.
type Notice struct {
	// Client reads metadata from the cache.
	Client client.Client
	// Recorder writes the events.
	Recorder events.EventRecorder
	// WatchFilter restricts to those with that value of the watch label; "" is all.
	WatchFilter string
}

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinehealthchecks,verbs=get;list;watch

// SetupWithManager adds the controller to the manager.
func (n *Notice) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("machinehealthcheck").
		For(check(), builder.WithPredicates(n.Changes())).
		WithOptions(options).Complete(n)
	return errors.Wrap(err, "adding the notice about MachineHealthChecks")
}

// Changes lets those pass that are there or come, and updates that bring one into force: it is unpaused, or taken from another core.
func (n *Notice) Changes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return n.inForce(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return n.inForce(e.ObjectNew) && !n.inForce(e.ObjectOld) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// inForce says whether this core would be expected to act on a MachineHealthCheck.
func (n *Notice) inForce(check client.Object) bool {
	_, paused := check.GetAnnotations()[clusterv1.PausedAnnotation]
	return !paused && check.GetDeletionTimestamp().IsZero() && predicates.MatchesWatchLabel(n.WatchFilter, check)
}

// Reconcile tells about one MachineHealthCheck.
func (n *Notice) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	found := check()
	if err := n.Client.Get(ctx, request.NamespacedName, found); err != nil {
		return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "reading MachineHealthCheck %s", request)
	}
	if !n.inForce(found) {
		return ctrl.Result{}, nil
	}
	ctrl.LoggerFrom(ctx).Info("Nothing acts on this MachineHealthCheck: replace unhealthy Machines by deleting them")
	n.Recorder.Eventf(found, nil, corev1.EventTypeWarning, ReasonNotSupported, "Check",
		"Nothing checks the health of Machines here yet: replace unhealthy Machines by deleting them")
	return ctrl.Result{}, nil
}

func check() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineHealthCheck"))
	return m
}
