// Package controller reconciles the identity kind of any provider: it asks the cloud whose credentials an identity has, and keeps
// the identity while machines use it. See README.md.
package controller

import (
	"cmp"
	"context"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/providers/driver/identity"
)

// Finalizer keeps an identity while machines use it.
const Finalizer = "infrastructure.millwright.dev/identity"

// Verifier is the credentials of one version of an identity and its Secret: another version is another value. Comparable.
type Verifier interface {
	// Verify asks the cloud whose credentials they are. The error is an identity.Invalid if it refuses them.
	Verify(ctx context.Context) (identity.Holder, error)
}

// Reconciler keeps the status of each identity, and the identities that are in use.
type Reconciler[I identity.Object] struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads from the API server itself, before the finalizer of an identity is removed.
	APIReader client.Reader
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock for the waits between checks.
	Clock clock.PassiveClock
	// Kind of I, for example AWSIdentity.
	Kind string
	// New returns an empty identity.
	New func() I
	// Machines are the objects that keep an identity from going.
	Machines identity.Users
	// Open returns the present credentials of an identity, normally a session of identity.Sessions, which notices rotations. It is
	// called every minute. Its error is an identity.Invalid where a person has to change something.
	Open func(ctx context.Context, id I) (Verifier, error)
	// CallTimeout limits each check.
	CallTimeout time.Duration
	// WatchFilter restricts the controller to objects with this value of the watch label; "" is all.
	WatchFilter string
	// Unused is true if there is nothing to reconcile: the provider uses no identities, and may have no right to them.
	Unused bool

	checks checks
}

// Reconcile checks the credentials if that is due, writes what follows, and removes the finalizer of an identity that is being deleted and
// not used any more.
func (r *Reconciler[I]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	id := r.New()
	if err := r.Client.Get(ctx, request.NamespacedName, id); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.Name)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, errors.Wrapf(err, "reading %s %s", r.Kind, request.Name)
	}
	if !predicates.MatchesWatchLabel(r.WatchFilter, id) {
		r.forget(request.Name)
		return ctrl.Result{}, nil
	}
	s := r.newScope(id)
	out := outcome.InOrder(ctx, s, r.release, r.hold, r.check)
	return out.And(r.save(ctx, s, out.Err())).Result()
}

// save writes the status that follows, then records events and metrics.
func (r *Reconciler[I]) save(ctx context.Context, s *scope[I], failure error) outcome.Outcome {
	_, err := s.Save(ctx, func(refused error) bool {
		if s.Gone {
			return false
		}
		s.refusal = persist.Refusal(cmp.Or(failure, refused))
		s.setStatus()
		return true
	})
	r.record(s, err)
	return outcome.FromError(err)
}

// forget drops what is kept in memory for an identity.
func (r *Reconciler[I]) forget(name string) {
	r.checks.forget(name)
	ready.DeleteLabelValues(r.Kind, name)
}
