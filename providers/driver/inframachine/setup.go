package inframachine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/bulkhead"
	controllermanager "millwright.dev/contracts/controller/manager"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/batch"
	"millwright.dev/providers/driver/inventory"
	"millwright.dev/providers/driver/shortage"
	"millwright.dev/providers/driver/spread"
)

// SetupWithManager adds the reconciler, its inventory and its batches to a manager.
func (r *Reconciler[M]) SetupWithManager(mgr ctrl.Manager) error {
	gvk, err := apiutil.GVKForObject(r.New(), mgr.GetScheme())
	if err != nil {
		return errors.Wrapf(err, "finding the kind %s in the scheme", r.Kind)
	}
	wiring := r.Wire(gvk.Group)
	if err := r.index(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	for _, runnable := range wiring.Runnables {
		if err := mgr.Add(runnable); err != nil {
			return errors.Wrap(err, "adding the inventory and the batches of calls")
		}
	}
	b := ctrl.NewControllerManagedBy(mgr).
		For(r.New(), builder.WithPredicates(predicates.HasWatchLabel(r.Options.WatchFilter), wiring.Changes))
	for _, w := range wiring.Watches {
		b = b.Watches(w.Object, handler.EnqueueRequestsFromMapFunc(w.Map), builder.WithPredicates(w.Changes))
	}
	for _, s := range wiring.Sources {
		b = b.WatchesRawSource(s)
	}
	b = b.WithOptions(controllermanager.ControllerOptions[reconcile.Request](r.Options.Concurrency))
	err = r.Identities.Watch(b, r.users()).Complete(r)
	return errors.Wrapf(err, "building the controller of %s", r.Kind)
}

// complete makes what the reconciler keeps in memory, and returns what has to run beside it: the inventory, and the batches,
// which enqueue the objects that they have answers for.
func (r *Reconciler[M]) complete(waker *wake.Waker) []manager.Runnable {
	r.written.Clock = r.Clock
	r.waker = waker
	r.traits = r.Driver.Traits().WithDefaults()
	r.Options = r.Options.withDefaults(r.traits)
	r.backoff, r.places = newBackoff(r.Clock, r.Options.Backoff, r.Options.Random), spread.NewDecisions()
	r.limiter, r.cloud = r.limits()
	r.shortages = shortage.New(r.Clock, shortage.DefaultTTL)
	r.turns = bulkhead.ForWorkers[driver.Scope](r.Options.Concurrency).Waking(waker.Enqueue)
	r.inventory = inventory.New(r.cloud, inventory.Options{
		Clock:            r.Clock,
		Fast:             r.Options.ListFast,
		Slow:             r.Options.ListSlow,
		Timeout:          r.Options.CallTimeout,
		StatusInterval:   r.Options.StatusInterval,
		UnreachableAfter: r.Options.UnreachableAfter,
		Listed:           r.sawInstances,
		Random:           r.Options.Random,
	})
	options := r.Options.Batch
	options.Clock = r.Clock
	options.Backoff = func(n int) time.Duration { return r.Options.Backoff(driver.ClassThrottle, n) }
	r.terminations = batch.New("terminate", r.terminateAll, waker, options)
	r.cleanups = batch.New("cleanup", r.cleanUpAll, waker, options)
	r.operations = batch.New("operations", r.lookAt, waker, options)
	runnables := []manager.Runnable{r.inventory, r.terminations, r.cleanups, r.operations}
	if r.Options.Orphans.On() {
		runnables = append(runnables, r.collector())
	}
	return runnables
}

// controllerField indexes both kinds by the UID of their controller, so that the cost of finding the machines of a set does not
// grow with the number of all other machines.
const controllerField = "metadata.controllerUID"

// index adds the indexes to the caches.
func (r *Reconciler[M]) index(indexer client.FieldIndexer) error {
	if r.Identities != nil {
		if err := r.users().Index(indexer); err != nil {
			return err
		}
	}
	return r.indexByController(indexer)
}

// indexByController adds that index to the caches.
func (r *Reconciler[M]) indexByController(indexer client.FieldIndexer) error {
	for _, obj := range []client.Object{&clusterv1.Machine{}, r.New()} {
		err := indexer.IndexField(context.Background(), obj, controllerField, func(obj client.Object) []string {
			if uid := controllerUID(obj); uid != "" {
				return []string{string(uid)}
			}
			return nil
		})
		if err != nil {
			return errors.Wrapf(err, "indexing %T by its controller", obj)
		}
	}
	return nil
}

// ofMachine returns requests for the object that a Machine refers to, and for that of the Machine's name, which it may own although it
// refers to another by now.
func (r *Reconciler[M]) ofMachine(_ context.Context, obj client.Object) []reconcile.Request {
	machine, ok := obj.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	ref := machine.Spec.InfrastructureRef
	if ref.Kind != r.Kind || ref.APIGroup != r.group {
		return nil
	}
	requests := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: machine.Namespace, Name: ref.Name}}}
	if ref.Name != machine.Name {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(machine)})
	}
	return requests
}

// ofCluster returns requests for the objects of a Cluster.
func (r *Reconciler[M]) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	list := r.NewList()
	err := r.Client.List(ctx, list, client.InNamespace(cluster.GetNamespace()),
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the machines of a Cluster failed", "cluster", client.ObjectKeyFromObject(cluster))
		return nil
	}
	var requests []reconcile.Request
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		}
		return nil
	})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Reading the machines of a Cluster failed", "cluster", client.ObjectKeyFromObject(cluster))
	}
	return requests
}
