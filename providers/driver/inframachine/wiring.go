package inframachine

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/controller/wake"
)

// Wiring is what drives a Reconciler: what runs beside it, and what wakes it. SetupWithManager adds it to a manager; what simulates a
// process without one, as providers/driver/drivertest does, drives the Reconciler with the same.
type Wiring struct {
	// Runnables run as long as the process leads.
	Runnables []manager.Runnable
	// Sources enqueue the objects for which there is an answer of the cloud.
	Sources []source.Source
	// Changes are the changes of the objects themselves that matter.
	Changes predicate.Predicate
	// Watches are the other kinds whose changes matter.
	Watches []Watch
}

// Watch is a kind whose changes matter to a Reconciler.
type Watch struct {
	// Object of the kind.
	Object client.Object
	// Changes are those that matter.
	Changes predicate.Predicate
	// Map returns requests for the objects that a change concerns.
	Map handler.MapFunc
}

// Wire makes what the Reconciler keeps in memory, and returns what drives it. It is called once, by the code that drives the Reconciler.
// The group is that of its kind.
func (r *Reconciler[M]) Wire(group string) Wiring {
	r.group = group
	waker := wake.New()
	runnables := r.complete(waker)
	return Wiring{
		Runnables: runnables, Sources: []source.Source{r.inventory.Source(), waker.Source()}, Changes: r.changes(),
		Watches: []Watch{
			{Object: &clusterv1.Machine{}, Changes: machineChanges(), Map: r.ofMachine},
			{Object: &clusterv1.Cluster{}, Changes: clusterChanges(), Map: r.ofCluster},
		},
	}
}
