package overshoot

import (
	"context"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
)

// count counts the living Machines by the cache, over all sets.
func (r *Reconciler) count(ctx context.Context, object client.Object) (Numbers, error) {
	sets, err := r.setsOf(ctx, object)
	if err != nil {
		return Numbers{}, err
	}
	numbers, planned := Numbers{}, 0
	switch object := object.(type) {
	case *clusterv1.MachineDeployment:
		numbers.Replicas = machines.Replicas(object.Spec.Replicas, object.Annotations)
		numbers.Surge = Surge(object, numbers.Replicas)
	case *clusterv1.MachineSet:
		numbers.Replicas = machines.Replicas(object.Spec.Replicas, object.Annotations)
	}
	for _, set := range sets {
		planned += int(ptr.Deref(set.Spec.Replicas, 0))
		numbers.ScalingDown = numbers.ScalingDown || set.Status.ObservedGeneration < set.Generation
		owned, err := machines.ControlledBy(ctx, r.Client, set)
		if err != nil {
			return Numbers{}, err
		}
		for _, machine := range owned {
			if machine.DeletionTimestamp.IsZero() {
				numbers.Living++
			}
		}
	}
	numbers.ScalingDown = numbers.ScalingDown || planned > numbers.Allowed()
	return numbers, nil
}

// setsOf are the sets of a deployment, by the cache; of a set it is that one. They must not be changed.
func (r *Reconciler) setsOf(ctx context.Context, object client.Object) ([]*clusterv1.MachineSet, error) {
	if set, ok := object.(*clusterv1.MachineSet); ok {
		return []*clusterv1.MachineSet{set}, nil
	}
	list := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrapf(err, "listing the MachineSets of MachineDeployment %s", object.GetName())
	}
	var sets []*clusterv1.MachineSet
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], object) {
			sets = append(sets, &list.Items[i])
		}
	}
	return sets, nil
}

// census is what the API server has in a namespace.
type census struct {
	// taken is when it was asked.
	taken time.Time
	// living counts the Machines that are not being deleted, by the UID of their set.
	living map[types.UID]int
	// deployments has the UID of the deployment of each set that has one.
	deployments map[types.UID]types.UID
}

// of is the number of Machines of a deployment or set.
func (c *census) of(object client.Object) int {
	sum := c.living[object.GetUID()]
	for set, deployment := range c.deployments {
		if deployment == object.GetUID() {
			sum += c.living[set]
		}
	}
	return sum
}

// pageSize bounds what one answer of the API server holds.
const pageSize = 1000

// take asks the API server for the metadata of all sets and Machines of a namespace, whatever their labels: what creates Machines that
// are not meant need not label them.
func (r *Reconciler) take(ctx context.Context, namespace string) (*census, error) {
	c := &census{taken: r.Clock.Now(), living: map[types.UID]int{}, deployments: map[types.UID]types.UID{}}
	err := r.each(ctx, namespace, "MachineSetList", func(set *metav1.PartialObjectMetadata) {
		if owner := deploymentOf(set); owner != nil {
			c.deployments[set.UID] = owner.UID
		}
	})
	if err == nil {
		err = r.each(ctx, namespace, "MachineList", func(machine *metav1.PartialObjectMetadata) {
			if owner := metav1.GetControllerOf(machine); owner != nil && machine.DeletionTimestamp.IsZero() {
				c.living[owner.UID]++
			}
		})
	}
	if err != nil {
		return nil, err
	}
	r.memory.keep(namespace, c)
	return c, nil
}

// recent is a census that was taken after a time: many objects of a namespace share one.
func (r *Reconciler) recent(ctx context.Context, namespace string, after time.Time) (*census, error) {
	defer r.memory.lock(namespace)()
	if c := r.memory.last(namespace, after); c != nil {
		return c, nil
	}
	return r.take(ctx, namespace)
}

// each passes what the API server has of a kind, page by page.
func (r *Reconciler) each(ctx context.Context, namespace, kind string, do func(*metav1.PartialObjectMetadata)) error {
	next := ""
	for {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind))
		if err := r.APIReader.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
			return errors.Wrapf(err, "counting: reading the %s of namespace %s from the API server", kind, namespace)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}
