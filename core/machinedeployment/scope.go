package machinedeployment

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/scopes"
	"millwright.dev/core/safety/overshoot"
)

// scope is what one reconcile has read and done. The steps fill it in; setStatus derives the status from it.
type scope struct {
	scopes.Base[*clusterv1.MachineDeployment, clusterv1.MachineDeploymentStatus]

	// deployment is what the steps read: Object, from applyDefaults on a copy of it with the defaults of admission, which are not
	// written. Do not change it; the status belongs into Object.
	deployment *clusterv1.MachineDeployment
	// defaulted is true once deployment has the defaults.
	defaulted bool
	// cluster is nil when there is none of that name.
	cluster *clusterv1.Cluster
	// paused lists what pauses the deployment: its annotation, its Cluster; empty when it is not paused. That spec.paused is true
	// is in settings.
	paused []string
	// specErrors lists what is wrong with the spec.
	specErrors []string
	settings   settings

	// sets are those that the deployment controls, the oldest first.
	sets []*clusterv1.MachineSet
	// candidates are sets that have no controller and that the selector matches.
	candidates []*clusterv1.MachineSet
	// machines are those of each set. They are shared with the cache and must not be changed.
	machines map[types.UID][]*clusterv1.Machine
	// read is false until sets and machines can be relied on.
	read bool
	// stale means that the cache does not show the last own writes yet; no status is written.
	stale bool

	// rollbackRefused is why RollbackToAnnotation cannot be followed; empty when it can, or is not set.
	rollbackRefused string
	// mismatches lists the sets that are not adopted, and why.
	mismatches []string
	// blockers lists why no set is created.
	blockers []string
	// created means that the current set was created in this reconcile.
	created bool
	// progress is when the deployment made progress last; stalled means that this is longer ago than the deadline.
	progress time.Time
	stalled  bool

	// current is the set that new Machines belong to; nil while there is none.
	current *clusterv1.MachineSet
	// outdated lists why the youngest set is not current; empty when one is.
	outdated []string
	// guard knows whether the creation of Machines is frozen; nil goes by labels.
	guard *overshoot.Guard
}

// settings are the fields of the spec that planning needs, with defaults set and percentages resolved.
type settings struct {
	replicas                 int
	maxSurge, maxUnavailable int
	strategy                 clusterv1.MachineDeploymentRolloutStrategyType
	paused                   bool
	// recreate means that all outdated Machines are deleted before new ones are created.
	recreate bool
	selector labels.Selector
}

// newScope begins a reconcile of a deployment. Nothing else writes its status.
func (r *Reconciler) newScope(deployment *clusterv1.MachineDeployment) *scope {
	s := &scope{Base: scopes.NewBase(deployment, r.Clock.Now(), scopes.Writer[*clusterv1.MachineDeployment, clusterv1.MachineDeploymentStatus]{
		Client: r.Client, Recorder: r.Recorder, Status: statusOf, Versions: r.Written,
	})}
	s.deployment, s.guard = s.Object, r.Overshoot
	return s
}

func statusOf(deployment *clusterv1.MachineDeployment) *clusterv1.MachineDeploymentStatus {
	return &deployment.Status
}

// Patch is Patch of Base, after which deployment is what was written.
func (s *scope) Patch(ctx context.Context, change func(*clusterv1.MachineDeployment)) error {
	if err := s.Base.Patch(ctx, change); err != nil {
		return err
	}
	s.refresh()
	return nil
}

// refresh makes deployment follow Object.
func (s *scope) refresh() {
	if s.deployment = s.Object; s.defaulted {
		s.deployment = s.Object.DeepCopy()
		setDefaults(s.deployment)
	}
}

// allMachines are the Machines of all sets.
func (s *scope) allMachines() []*clusterv1.Machine {
	var all []*clusterv1.Machine
	for _, set := range s.sets {
		all = append(all, s.machines[set.UID]...)
	}
	return all
}
