// Package healthcheck reports on MachineHealthChecks that nothing acts on them. New ones are refused by admission; those of an
// earlier core, and those that take effect without admission, are reported here, since their users expect that their Machines are
// checked.
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

	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/predicates"
)

// ReasonNotSupported is the reason of the event.
const ReasonNotSupported = "NotSupported"

// Notice records an event on each MachineHealthCheck in force: once in each process, and when it takes effect.
type Notice struct {
	// Client reads metadata from the cache.
	Client client.Client
	// Recorder writes the events.
	Recorder events.EventRecorder
	// WatchFilter restricts the controller to MachineHealthChecks with this value of the watch label; "" is all.
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

// Changes lets creations pass, and updates by which one takes effect: it is unpaused, or taken from another core.
func (n *Notice) Changes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return n.inForce(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return n.inForce(e.ObjectNew) && !n.inForce(e.ObjectOld) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// inForce reports whether this core would be expected to act on a MachineHealthCheck.
func (n *Notice) inForce(check client.Object) bool {
	return len(paused.By(check, nil)) == 0 && check.GetDeletionTimestamp().IsZero() && predicates.MatchesWatchLabel(n.WatchFilter, check)
}

// Reconcile records the event on one MachineHealthCheck.
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
