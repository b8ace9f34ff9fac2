package lifecycle

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// view is what the API server has shown of the objects that phases wait for.
type view struct {
	mu sync.Mutex
	// machines are their phases by name.
	machines   map[string]string
	nodes      map[string]bool
	deployment *clusterv1.MachineDeployment
	// nodesDeleted are the Nodes that were deleted so far.
	nodesDeleted int
	// changed holds a token when anything changed since the last look.
	changed chan struct{}
}

// state is a view at one moment.
type state struct {
	machines, running, deleting int
	nodes, nodesDeleted         int
	// deployment is nil when there is none.
	deployment *clusterv1.MachineDeployment
}

func newView() *view {
	return &view{machines: map[string]string{}, nodes: map[string]bool{}, changed: make(chan struct{}, 1)}
}

// observe follows the objects through the cache's informers, before or after it is started.
func (v *view) observe(ctx context.Context, c cache.Cache) error {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	for _, object := range []client.Object{&clusterv1.Machine{}, &clusterv1.MachineDeployment{}, node} {
		informer, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return errors.Wrapf(err, "watching %T", object)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { v.set(object, true) },
			UpdateFunc: func(_, object any) { v.set(object, true) },
			DeleteFunc: func(object any) { v.set(lastKnown(object), false) },
		})
		if err != nil {
			return errors.Wrapf(err, "following %T", object)
		}
	}
	return nil
}

// lastKnown is the object of a deletion, also when the informer has missed the event itself.
func lastKnown(object any) any {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return object
}

// set notes that an object is there as it is, or that it is gone.
func (v *view) set(object any, exists bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch o := object.(type) {
	case *clusterv1.Machine:
		delete(v.machines, o.Name)
		if exists {
			v.machines[o.Name] = phaseOf(o)
		}
	case *clusterv1.MachineDeployment:
		v.deployment = nil
		if exists {
			v.deployment = o
		}
	case *metav1.PartialObjectMetadata:
		if exists {
			v.nodes[o.Name] = true
		} else {
			delete(v.nodes, o.Name)
			v.nodesDeleted++
		}
	}
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

// phaseOf does not wait for the core to report that a Machine is being deleted.
func phaseOf(m *clusterv1.Machine) string {
	if !m.DeletionTimestamp.IsZero() {
		return string(clusterv1.MachinePhaseDeleting)
	}
	return m.Status.Phase
}

// state sums the view up.
func (v *view) state() state {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := state{machines: len(v.machines), nodes: len(v.nodes), nodesDeleted: v.nodesDeleted, deployment: v.deployment}
	for _, phase := range v.machines {
		switch phase {
		case string(clusterv1.MachinePhaseRunning):
			s.running++
		case string(clusterv1.MachinePhaseDeleting):
			s.deleting++
		}
	}
	return s
}

// nodeNames are the Nodes that are there, in order.
func (v *view) nodeNames() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Sorted(maps.Keys(v.nodes))
}

// machineNames are the Machines that are there, in order.
func (v *view) machineNames() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Sorted(maps.Keys(v.machines))
}

// settled reports whether the deployment has exactly n Machines, all of them Running, up to date and
// available, also by its status.
func (s state) settled(n int) bool {
	d := s.deployment
	if d == nil || d.Status.ObservedGeneration < d.Generation || s.machines != n || s.running != n {
		return false
	}
	for _, count := range []*int32{d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UpToDateReplicas} {
		if int(ptr.Deref(count, 0)) != n {
			return false
		}
	}
	return true
}

// gone reports whether the deployment and all its Machines are gone.
func (s state) gone() bool { return s.deployment == nil && s.machines == 0 }
