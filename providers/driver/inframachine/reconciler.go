// Package inframachine reconciles the machine kind of any provider by means of its Driver: one
// object, at most one instance, from launch to termination. README.md tells the order of steps.
package inframachine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/batch"
	"millwright.dev/providers/driver/inventory"
	"millwright.dev/providers/driver/pace"
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
	Clock clock.Clock
	// Driver of the cloud.
	Driver driver.Driver[M]
	// Inventory of the cloud's instances; it must list through the same Driver.
	Inventory *inventory.Inventory
	// Pacer of launches.
	Pacer *pace.Pacer
	// Kind of M, for example AWSMachine.
	Kind string
	// New returns an empty object.
	New func() M
	// NewList returns an empty list of M.
	NewList func() client.ObjectList
	// Options of behaviour.
	Options Options

	group   string
	backoff *backoff
	places  *spread.Decisions
	turns   *turns
	// terminations and dependants are requested for all objects of a scope together.
	terminations *batch.Batcher[termination]
	dependants   *batch.Batcher[[]string]
}

// Options of a Reconciler; zero values mean the defaults.
type Options struct {
	// VisibilityGrace is how long after a launch the cloud may fail to list the instance before its
	// absence is believed. Default: 5 minutes.
	VisibilityGrace time.Duration
	// CallTimeout limits each call to the cloud. Default: 30 seconds.
	CallTimeout time.Duration
	// Backoff returns the time to wait after the n-th failure of a class in a row, before jitter.
	// Default: DefaultBackoff.
	Backoff func(class driver.Class, n int) time.Duration
	// Batch says how requests to the cloud are gathered that need not be made for each object alone: those that end
	// instances and look for dependants. Defaults: batch.DefaultOptions. Clock and Backoff are set by the Reconciler.
	Batch batch.Options
	// WatchFilter, when not empty, leaves only objects whose label cluster.x-k8s.io/watch-filter has
	// this value.
	WatchFilter string
	// Concurrency is the number of objects that are reconciled at a time. A quarter of them may call the cloud in one scope, so
	// that one that does not answer holds up no other. Default: 40.
	Concurrency int
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		VisibilityGrace: 5 * time.Minute,
		CallTimeout:     30 * time.Second,
		Backoff:         DefaultBackoff,
		Concurrency:     40,
	}
}

func (o Options) withDefaults() Options {
	defaults := DefaultOptions()
	if o.VisibilityGrace == 0 {
		o.VisibilityGrace = defaults.VisibilityGrace
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = defaults.CallTimeout
	}
	if o.Backoff == nil {
		o.Backoff = defaults.Backoff
	}
	if o.Concurrency == 0 {
		o.Concurrency = defaults.Concurrency
	}
	return o
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
//  2. stop if paused;
//  3. when being deleted: find the instance, end it if it carries the object's mark, wait for it and its dependants, let the object go;
//  4. else: wait for owner, Cluster and bootstrap data, launch, observe;
//  5. conclude conditions and write the status once, if it changed.
func (r *Reconciler[M]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, errors.Wrapf(err, "reading %s %s", r.Kind, req)
	}
	if !r.selected(obj) {
		r.withdraw(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	r.backoff.begin(req.NamespacedName, subject{uid: obj.GetUID(), deleting: !obj.GetDeletionTimestamp().IsZero()})
	s, err := r.gather(ctx, obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer r.endTurn(s)
	out := r.run(ctx, s)
	if isRefusal(out.err) {
		s.facts.standing = refused(out.err)
	}
	if err := r.writeStatus(ctx, s); err != nil {
		r.announceRefusal(s, err)
		if out.err == nil {
			out.err = err
		}
	}
	return out.result()
}

// run goes through the steps that the object's state asks for, up to the first that is unfinished.
func (r *Reconciler[M]) run(ctx context.Context, s *scope[M]) outcome {
	steps := []func(context.Context, *scope[M]) outcome{
		r.checkFailure, r.awaitOwner, r.awaitCluster, r.correctRecord, r.launch, r.keepFinalizer, r.observe,
	}
	if !s.obj.GetDeletionTimestamp().IsZero() {
		steps = []func(context.Context, *scope[M]) outcome{
			r.checkFinalizer, r.correctRecord, r.locate, r.checkMark, r.recordLocated, r.terminate, r.endOthers, r.awaitTermination, r.awaitOthers, r.awaitDependants, r.handOver, r.release,
		}
	}
	if s.facts.paused {
		r.withdraw(s.key)
		steps = nil
	}
	for _, step := range steps {
		if out := step(ctx, s); !out.proceed {
			return out
		}
	}
	return done()
}

// forget drops what is kept in memory for an object.
func (r *Reconciler[M]) forget(key client.ObjectKey) {
	r.Inventory.Forget(key)
	r.Pacer.Forget(key)
	r.places.Forget(key)
	r.backoff.end(key)
	r.withdraw(key)
}
