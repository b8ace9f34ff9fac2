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

	"millwright.dev/core/index"
	"millwright.dev/core/machines"
)

// count counts the living Machines by the cache, over all sets, and those that were created for them and have no controller any more.
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
	loose := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, loose, client.InNamespace(object.GetNamespace()),
		client.MatchingFields{index.Controller: index.NoController}, client.UnsafeDisableDeepCopy); err != nil {
		return Numbers{}, errors.Wrapf(err, "listing Machines without a controller in namespace %s", object.GetNamespace())
	}
	creator := machines.NewCreator(object, sets...)
	for i := range loose.Items {
		if creator.Counts(&loose.Items[i]) {
			numbers.Living++
		}
	}
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
	// loose are Machines without a controller.
	loose []*metav1.PartialObjectMetadata
}

// of is the number of Machines of a deployment or set.
func (c *census) of(object client.Object) int {
	sum := c.living[object.GetUID()]
	creator := machines.NewCreator(object)
	for set, deployment := range c.deployments {
		if deployment == object.GetUID() {
			sum += c.living[set]
			creator.UIDs[set] = true
		}
	}
	for _, machine := range c.loose {
		if creator.Counts(machine) {
			sum++
		}
	}
	return sum
}

// take asks the API server for the metadata of all sets and Machines of a namespace, whatever their labels: what creates Machines that
// are not meant need not label them.
func (r *Reconciler) take(ctx context.Context, namespace string) (*census, error) {
	c := &census{taken: r.Clock.Now(), living: map[types.UID]int{}, deployments: map[types.UID]types.UID{}}
	err := machines.EachLive(ctx, r.APIReader, namespace, "MachineSetList", func(set *metav1.PartialObjectMetadata) {
		if owner := deploymentOf(set); owner != nil {
			c.deployments[set.UID] = owner.UID
		}
	})
	if err == nil {
		err = machines.EachLive(ctx, r.APIReader, namespace, "MachineList", func(machine *metav1.PartialObjectMetadata) {
			switch owner := metav1.GetControllerOf(machine); {
			case owner == nil:
				c.loose = append(c.loose, machine.DeepCopy())
			case machine.DeletionTimestamp.IsZero():
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
