package machinedeployment

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// Rollout is a MachineDeployment with its MachineSets and Machines: all that its next numbers of replicas depend on.
type Rollout struct {
	// Sets are its MachineSets in the order in which they were created.
	Sets []*clusterv1.MachineSet
	// Current is the one whose template is wanted; nil when there is none.
	Current *clusterv1.MachineSet
	// Machines are those of each set.
	Machines map[types.UID][]*clusterv1.Machine
	// Reserve is how many Machines a set may still turn out to have, because it has not looked at its last decrease yet.
	Reserve func(set *clusterv1.MachineSet) int
}

// Next returns the number of replicas that each set is to have next, and that of a current set that is to be created; it is nil if
// none is. It sends nothing: simulations of a Cluster use it to roll.
func (o Rollout) Next(deployment *clusterv1.MachineDeployment) (replicas map[types.UID]int, created *int) {
	settings, _ := resolve(deployment)
	plan := makePlan(o.view(settings))
	numbers := map[string]int{}
	for _, intent := range plan.scale {
		numbers[intent.set] = intent.to
	}
	replicas = map[types.UID]int{}
	for _, set := range o.Sets {
		replicas[set.UID] = desired(set)
		if to, ok := numbers[set.Name]; ok {
			replicas[set.UID] = to
		}
	}
	if plan.create {
		created = ptr.To(plan.createReplicas)
	}
	return replicas, created
}

// view makes what the planner sees.
func (o Rollout) view(by settings) view {
	v := view{
		replicas: by.replicas, maxSurge: by.maxSurge, maxUnavailable: by.maxUnavailable,
		strategy: by.strategy, paused: by.paused, recreate: by.recreate,
	}
	for _, set := range o.Sets {
		all := o.Machines[set.UID]
		seen := setView{
			name:    set.Name,
			current: o.Current != nil && o.Current.UID == set.UID,
			desired: desired(set),
			settled: looked(set) && int(ptr.Deref(set.Status.Replicas, -1)) == len(all),
			reserve: o.Reserve(set),
		}
		if !set.DeletionTimestamp.IsZero() {
			// It keeps none of its Machines, and its number is not changed.
			seen.desired = 0
		}
		for _, machine := range machines.ByDeletion(all, set.Spec.Deletion.Order) {
			seen.order = append(seen.order, machines.Available(machine))
			if _, chosen := machine.Annotations[clusterv1.DeleteMachineAnnotation]; !machine.DeletionTimestamp.IsZero() {
				seen.deleting++
			} else if chosen {
				seen.chosen++
			}
		}
		v.sets = append(v.sets, seen)
	}
	return v
}
