// Package machinetemplate reports how large the Nodes of a template's machines are, for the kind of any provider: the
// cluster autoscaler needs that before there is one.
package machinetemplate

import (
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/predicates"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/limit"
)

// Object is a provider's machine template kind. The accessor returns a pointer into the object.
type Object interface {
	client.Object
	CommonStatus() *driverv1.MachineTemplateStatus
}

// Size is how large a machine is.
type Size struct {
	// Capacity is at least cpu and memory, as the cloud names them. Its ephemeral-storage is the size of the system disk: that of the
	// template, else that of the image. The reconciler subtracts what Pods cannot use.
	Capacity corev1.ResourceList
	NodeInfo driverv1.NodeInfo
}

// Sizer asks a cloud how large the Nodes of a template's machines are. It must honour the context; its errors have the
// classes of package driver.
type Sizer[T Object] interface {
	Size(ctx context.Context, template T) (Size, error)
}

// Reconciler sets the status of each template, once: the spec is immutable, and what a cloud offers under a name
// does not change.
type Reconciler[T Object] struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Sizer of the cloud.
	Sizer Sizer[T]
	// Limiter is that of the calls for machines, inframachine.Reconciler.Limiter: those of Size are calls of driver.CallRead. Nil: they are
	// not limited.
	Limiter *limit.Limiter
	// LimitScope returns for what the cloud counts the calls of Size; needed with Limiter.
	LimitScope func(template T) string
	// Identities decides which templates may use the identities that they name; nil if the provider has none.
	Identities *identity.Guard
	// Recorder of events; SetupWithManager sets a default.
	Recorder events.EventRecorder
	// Clock for the waits between calls that fail.
	Clock clock.PassiveClock
	// Kind of T, for example AWSMachineTemplate.
	Kind string
	// New returns an empty object.
	New func() T
	// NewList returns an empty list of T; needed with Identities.
	NewList func() client.ObjectList
	// CallTimeout limits each call to the cloud.
	CallTimeout time.Duration
	// WatchFilter restricts the controller to objects with this value of the watch label; "" is all.
	WatchFilter string

	retries retries
}

// Reconcile asks the cloud unless the answer is known, and writes the status if it changed. The annotation
// cluster.x-k8s.io/paused keeps it from that, and so does a failure until its wait is over, whatever wakes the template: what the
// cloud refuses permanently is not asked again, since the spec is immutable.
func (r *Reconciler[T]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	template := r.New()
	if err := r.Client.Get(ctx, request.NamespacedName, template); err != nil {
		r.retries.forget(request.NamespacedName)
		return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "reading %s %s", r.Kind, request)
	}
	if !predicates.MatchesWatchLabel(r.WatchFilter, template) {
		r.retries.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	s := r.newScope(template)
	return outcome.InOrder(ctx, s, r.checkNeed, r.checkIdentity, r.holdBack, r.askSize, r.save, r.retryLater).Result()
}

// save writes the answer of the cloud, or why there is none.
func (r *Reconciler[T]) save(ctx context.Context, s *scope[T]) outcome.Outcome {
	_, err := s.Save(ctx, func(error) bool {
		s.setStatus()
		return true
	})
	return outcome.FromError(err)
}
