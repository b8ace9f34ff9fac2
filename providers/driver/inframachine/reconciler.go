// Package inframachine reconciles the machine kind of any provider by means of its Driver: one
// object, at most one instance, from launch to termination. see README.md for the order of steps.
package inframachine

import (
	"cmp"
	"context"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/bulkhead"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/batch"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/inventory"
	"millwright.dev/providers/driver/limit"
	"millwright.dev/providers/driver/orphans"
	"millwright.dev/providers/driver/shortage"
	"millwright.dev/providers/driver/spread"
)

// Finalizer keeps an object until its instance and what was launched with it are gone.
const Finalizer = "infrastructure.millwright.dev/instance"

// Reconciler keeps one instance for each object of kind M.
type Reconciler[M driver.Object] struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads from the API server itself: bootstrap data, since Secrets are not cached, and what a cache may not show yet.
	APIReader client.Reader
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock for deadlines and waits.
	Clock clock.WithTicker
	// Driver of the cloud.
	Driver driver.Driver[M]
	// Identities decides which objects may use the identities that they name; nil if the provider has none.
	Identities *identity.Guard
	// Kind of M, for example AWSMachine.
	Kind string
	// New returns an empty object.
	New func() M
	// NewList returns an empty list of M.
	NewList func() client.ObjectList
	// Options of behaviour.
	Options Options

	group     string
	traits    driver.Traits
	inventory *inventory.Inventory
	limiter   *limit.Limiter
	// cloud is the Driver, whose calls are limited.
	cloud     driver.Driver[M]
	shortages *shortage.Memory
	// marks gives out the marks of launches; nil if orphans are not looked for.
	marks   *orphans.Store
	backoff *backoff
	places  *spread.Decisions
	turns   *bulkhead.Bulkhead[driver.Scope]
	// terminations, cleanups and observations of operations are requested for all objects of a scope together.
	terminations *batch.Batcher[termination]
	cleanups     *batch.Batcher[[]string]
	operations   *batch.Batcher[driver.Instance]
	// uids are those of the objects that all else is known of.
	uids noted[types.UID]
	// followed is when the operation of an object was last read; cleaned is the attempt before which nothing was left of earlier ones.
	followed noted[time.Time]
	cleaned  noted[int]
	// finished is what instances showed when what they lacked was last asked for.
	finished noted[finish]
	// written are the versions of the objects that this process has written: nothing is concluded from a cache that is older.
	written persist.Versions
	// dead is the attempt of an object of which the cloud itself has shown that there is nothing.
	dead noted[int]
	// lateFailures are how launches have failed that the cloud had accepted, and terminated is when it has accepted a termination.
	lateFailures noted[lateFailureOf]
	terminated   noted[time.Time]
	// gone is the instance that the cloud itself does not show any more, of an object that is being deleted.
	gone noted[string]
	// alive is since when the cloud contradicts a record of a failure.
	alive noted[aliveSince]
	// taken are the failure domains in which another owner has the name of an object's instance.
	taken noted[[]string]
	// refused are the fallback types that the cloud has refused for an object.
	refused noted[refusedTypes]
	// interrupted is what the cloud takes back, as reported to this process.
	interrupted noted[interruption]
	// unusable are the objects whose bootstrap data could not be used when it was last read.
	unusable noted[bool]
	// unrecorded is by which refusal of the API server the failure of the latest call could not be recorded.
	unrecorded noted[string]
	// begun is when this process has reconciled its first object.
	begun begun
	waker *wake.Waker
}

// What the reconciler needs beside its own kind. Secrets are read one by one, by the name that a
// Machine gives; RBAC cannot narrow that to the names of bootstrap data.
//
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings one object and its instance together:
//
//  1. read the object, its Machine and Cluster;
//  2. stop if paused, or if it may not use its identity;
//  3. when being deleted: find the instance, wait until its Machine has been drained, terminate it if it carries the object's mark, wait
//     for it and its dependants, release the object;
//  4. else: wait for owner, Cluster and bootstrap data, launch, observe, delete the Machine if the cloud takes the instance back, ask for
//     what the instance lacks;
//  5. derive the conditions and write the status once, if it changed.
func (r *Reconciler[M]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, errors.Wrapf(err, "reading %s %s", r.Kind, req)
	}
	if !predicates.MatchesWatchLabel(r.Options.WatchFilter, obj) {
		// It is another manager's, and its end is no event here.
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if wait := r.written.Behind(obj); wait > 0 {
		return outcome.WaitFor(wait).Result()
	}
	r.meet(obj)
	r.backoff.begin(req.NamespacedName, subject{uid: obj.GetUID(), deleting: !obj.GetDeletionTimestamp().IsZero()})
	s, err := r.newScope(ctx, obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer s.endTurn()
	out := outcome.InOrder(ctx, s, r.steps(s)...)
	return out.And(r.save(ctx, s, out.Err())).And(r.lookAgain(s.Now)).Result()
}

// steps are those that the state of the object asks for. They end with the first that is not finished.
func (r *Reconciler[M]) steps(s *scope[M]) []outcome.Step[*scope[M]] {
	switch {
	case len(s.observed.pausedBy) > 0:
		return []outcome.Step[*scope[M]]{r.withdrawRequests}
	case s.Deleting():
		return []outcome.Step[*scope[M]]{
			r.checkFinalizer, r.checkIdentity, r.correctRecord, r.locate, r.checkMark, r.recordLocated, r.awaitMachine, r.terminate,
			r.terminateOthers, r.awaitTermination, r.awaitOthers, r.awaitDependants, r.handOver, r.release,
		}
	}
	return []outcome.Step[*scope[M]]{
		r.holdRecorded, r.checkFailure, r.checkIdentity, r.awaitOwner, r.awaitCluster, r.correctRecord, r.launch, r.ensureFinalizer,
		r.observe, r.checkNotice, r.replaceInterrupted, r.finish,
	}
}

// save writes the status that follows from what the steps have observed, then records events and metrics. failure is what the
// steps have ended with: what the API server has refused them is reported.
func (r *Reconciler[M]) save(ctx context.Context, s *scope[M], failure error) outcome.Outcome {
	written, err := s.Save(ctx, func(refused error) bool {
		if refusal := persist.Refusal(cmp.Or(failure, refused)); refusal != "" {
			s.observed.state = explainRefusal(refusal)
		}
		if s.Gone || s.observed.unsettled || persist.LostRace(failure) || !s.explained() {
			return false
		}
		s.setStatus()
		return true
	})
	r.record(s, written.Status, err)
	return outcome.FromError(err)
}

// meet drops what is kept in memory for an earlier object of the same name, whose end was not seen: attempts and generations of both begin
// with 1.
func (r *Reconciler[M]) meet(obj client.Object) {
	key := client.ObjectKeyFromObject(obj)
	if known := r.uids.get(key); known != "" && known != obj.GetUID() {
		r.forget(key)
	}
	r.uids.set(key, obj.GetUID())
}

// forget drops what is kept in memory for an object.
func (r *Reconciler[M]) forget(key client.ObjectKey) {
	r.inventory.Forget(key)
	r.limiter.Forget(key)
	r.uids.forget(key)
	r.followed.forget(key)
	r.cleaned.forget(key)
	r.finished.forget(key)
	r.taken.forget(key)
	r.refused.forget(key)
	r.dead.forget(key)
	r.lateFailures.forget(key)
	r.terminated.forget(key)
	r.gone.forget(key)
	r.alive.forget(key)
	r.interrupted.forget(key)
	r.unusable.forget(key)
	r.unrecorded.forget(key)
	r.places.Forget(key)
	r.backoff.end(key)
	r.withdraw(key)
}

// withdraw takes back what was requested for an object and has not been sent: it is gone, paused or not this manager's.
func (r *Reconciler[M]) withdraw(key client.ObjectKey) {
	r.terminations.Forget(key)
	r.cleanups.Forget(key)
	r.operations.Forget(key)
}

// withdrawRequests is withdraw for an object that is paused.
func (r *Reconciler[M]) withdrawRequests(ctx context.Context, s *scope[M]) outcome.Outcome {
	r.withdraw(s.Key())
	r.leaveCloudIfRefused(ctx, s.Object)
	return outcome.Wait()
}
