package overshoot

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// Numbers are what is judged.
type Numbers struct {
	// Replicas is how many Machines there shall be, Surge how many more a rollout may make.
	Replicas, Surge int
	// Living counts those that are not being deleted, in all sets.
	Living int
	// ScalingDown means that the surplus may be about to go: a set has not read its spec yet, or the sets shall have more than the
	// deployment, which has still to write them.
	ScalingDown bool
}

// Allowed is how many Machines the planner may make.
func (n *Numbers) Allowed() int { return n.Replicas + n.Surge }

// Frozen reports whether Machines must not be created, by the numbers alone. frozen is whether that is so already.
func (o *Options) Frozen(frozen bool, n Numbers) bool {
	high := n.Allowed() + o.Up
	switch {
	case !o.enabled():
		return false
	case frozen:
		return n.Living > o.low(n)
	}
	return n.Living >= high
}

// low is the number that ends a freeze: fewer than those that begin one in any case, or the same number would do both for ever.
func (o *Options) low(n Numbers) int { return n.Allowed() + o.Up - max(o.Down, 1) }

// Because describes an overshoot.
func (o *Options) Because(n Numbers) string {
	high := n.Allowed() + o.Up
	return fmt.Sprintf("%s counted; replicas %d, surge %d and --safety-up %d allow %d; creation resumes at %d",
		machines.Plural(n.Living, "Machine"), n.Replicas, n.Surge, o.Up, high-1, o.low(n))
}

// Surge is how many Machines more than its replicas a rollout of a deployment may make. It is never less than what the deployment's
// own controller goes by; core/machinedeployment has the test of that.
func Surge(deployment *clusterv1.MachineDeployment, replicas int) int {
	strategy := deployment.Spec.Rollout.Strategy
	if strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		return 0
	}
	limit := ptr.Deref(strategy.RollingUpdate.MaxSurge, intstr.FromInt32(1))
	surge, err := intstr.GetScaledValueFromIntOrPercent(&limit, replicas, true)
	if err != nil {
		// The deployment reports it, and rolls nothing out.
		return 0
	}
	return max(surge, 0)
}
