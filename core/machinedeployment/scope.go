package machinedeployment

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// scope is what one reconcile has read and done. Steps fill it in; conclude judges it.
type scope struct {
	// deployment is changed in memory; before is how it was read, or last written.
	deployment, before *clusterv1.MachineDeployment
	now                time.Time

	// cluster is nil when there is none of that name.
	cluster *clusterv1.Cluster
	// paused says why nothing is done; empty when the deployment is not paused by annotation or Cluster.
	paused []string
	// specErrors says what is wrong with the spec.
	specErrors []string
	settings   settings

	// sets are those that the deployment controls, the oldest first.
	sets []*clusterv1.MachineSet
	// candidates are sets that nobody controls and that the selector matches.
	candidates []*clusterv1.MachineSet
	// machines are those of each set. They are shared with the cache and must not be changed.
	machines map[types.UID][]*clusterv1.Machine
	// read is false until sets and machines can be relied on.
	read bool
	// stale means that the cache does not show the last own writes; nothing can be concluded.
	stale bool

	// rollbackRefused says why RollbackToAnnotation cannot be followed; empty when it can, or is not there.
	rollbackRefused string
	// mismatches says which sets are not adopted, and why.
	mismatches []string
	// created means that the current set was created in this reconcile.
	created bool
	// progress is when the deployment came closer to what is wanted last; stalled means that this is longer ago than the
	// deadline.
	progress time.Time
	stalled  bool

	// current is the set that new Machines belong to; nil while there is none.
	current *clusterv1.MachineSet
	// outdated says why the youngest set is not current; empty when one is.
	outdated []string
	// refused means that the API server has refused the metadata of the deployment, so that only the status is written.
	refused bool
	// gone means that the finalizer was removed.
	gone bool
}

// settings are the fields of the spec that planning needs, with defaults filled in and numbers resolved.
type settings struct {
	replicas                 int
	maxSurge, maxUnavailable int
	strategy                 clusterv1.MachineDeploymentRolloutStrategyType
	paused                   bool
	// recreate means that all outdated Machines go before new ones are made.
	recreate bool
	selector labels.Selector
}

// allMachines are the Machines of all sets.
func (s *scope) allMachines() []*clusterv1.Machine {
	var all []*clusterv1.Machine
	for _, set := range s.sets {
		all = append(all, s.machines[set.UID]...)
	}
	return all
}
