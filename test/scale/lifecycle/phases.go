package lifecycle

import (
	"context"
	"slices"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/scale/standin"
)

// The phases in their order.
const (
	ScaleUp    = "scale-up"
	Idle       = "idle"
	Heartbeats = "heartbeats"
	Restart    = "restart"
	Rollout    = "rollout"
	ScaleDown  = "scale-down"
	Delete     = "delete"
)

// idleTime is how long the idle phase lasts.
const idleTime = 30 * time.Second

// scaleDownPart of the Machines go in the scale-down, so that the deletion after it still has most.
const scaleDownPart = 5

// phase is one stretch of a run.
type phase struct {
	name string
	// prepare is not measured.
	prepare func(context.Context, *life) error
	// act returns once the state is reached, and says how many Machines it was about.
	act func(context.Context, *life) (int, error)
	// restarts says that the core is stopped before act, which starts it again.
	restarts bool
	// deletes says that Machines end in the phase.
	deletes bool
	// ends says that nothing may be left over after the phase.
	ends bool
}

var phases = []phase{
	{name: ScaleUp, act: scaleUp},
	{name: Idle, act: idle},
	{name: Heartbeats, act: heartbeats},
	{name: Restart, act: restart, restarts: true},
	{name: Rollout, act: rollout, deletes: true},
	{name: ScaleDown, act: scaleDown, deletes: true},
	{name: Delete, prepare: placePods, act: deleteAll, deletes: true, ends: true},
}

// AllPhases are the names of the phases in their order.
func AllPhases() []string {
	names := make([]string, 0, len(phases))
	for _, p := range phases {
		names = append(names, p.name)
	}
	return names
}

// selected are the phases of these names, and always the first, without which there is nothing.
func selected(names []string) []phase {
	return slices.DeleteFunc(slices.Clone(phases), func(p phase) bool {
		return len(names) > 0 && p.name != ScaleUp && !slices.Contains(names, p.name)
	})
}

func scaleUp(ctx context.Context, l *life) (int, error) {
	l.replicas = l.options.N
	if l.options.HealthCheck {
		if err := l.providers.Client().Create(ctx, healthCheck()); err != nil {
			return 0, errors.Wrap(err, "creating the MachineHealthCheck")
		}
	}
	if err := l.providers.Client().Create(ctx, deployment(int32(l.replicas))); err != nil { // Thousands fit.
		return 0, errors.Wrap(err, "creating the MachineDeployment")
	}
	return l.replicas, l.await(ctx, "state with all Machines Running", func(s state) bool { return s.settled(l.replicas) })
}

func idle(ctx context.Context, l *life) (int, error) {
	timer := time.NewTimer(idleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return l.replicas, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func heartbeats(ctx context.Context, l *life) (int, error) {
	nodes := l.view.nodeNames()
	beat := metav1.NewTime(time.Now())
	return l.replicas, inParallel(ctx, nodes, func(ctx context.Context, node string) error {
		return standin.Heartbeat(ctx, l.providers.Client(), node, beat)
	})
}

// restart starts the core again. The wait for quiet that follows checks by its counters that it has
// reconciled all Machines.
func restart(ctx context.Context, l *life) (int, error) {
	return l.replicas, l.launch(ctx)
}

func rollout(ctx context.Context, l *life) (int, error) {
	old := l.view.machineNames()
	err := l.patchDeployment(ctx, func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Spec.InfrastructureRef.Name = secondTemplate
	})
	if err != nil {
		return 0, err
	}
	return l.replicas, l.await(ctx, "state with all Machines replaced", func(s state) bool {
		return s.settled(l.replicas) && !slices.ContainsFunc(l.view.machineNames(), func(name string) bool {
			_, found := slices.BinarySearch(old, name)
			return found
		})
	})
}

func scaleDown(ctx context.Context, l *life) (int, error) {
	fewer := max(l.replicas/scaleDownPart, 1)
	l.replicas -= fewer
	err := l.patchDeployment(ctx, func(d *clusterv1.MachineDeployment) {
		d.Spec.Replicas = ptr.To(int32(l.replicas)) // Thousands fit.
	})
	if err != nil {
		return 0, err
	}
	return fewer, l.await(ctx, "state with fewer Machines", func(s state) bool { return s.settled(l.replicas) })
}

func deleteAll(ctx context.Context, l *life) (int, error) {
	d := deployment(0)
	if err := l.providers.Client().Delete(ctx, d); err != nil && !apierrors.IsNotFound(err) {
		return 0, errors.Wrap(err, "deleting the MachineDeployment")
	}
	return l.replicas, l.await(ctx, "end of all Machines", state.gone)
}

// patchDeployment changes the spec as a user would.
func (l *life) patchDeployment(ctx context.Context, change func(*clusterv1.MachineDeployment)) error {
	current := &clusterv1.MachineDeployment{}
	if err := l.providers.Reader().Get(ctx, client.ObjectKeyFromObject(deployment(0)), current); err != nil {
		return errors.Wrap(err, "reading the MachineDeployment")
	}
	changed := current.DeepCopy()
	change(changed)
	err := l.providers.Client().Patch(ctx, changed, client.MergeFrom(current))
	if err != nil {
		return errors.Wrap(err, "changing the MachineDeployment")
	}
	// The previous state must not count as the new one.
	return l.await(ctx, "change of the MachineDeployment", func(s state) bool {
		return s.deployment != nil && s.deployment.Generation >= changed.Generation
	})
}
