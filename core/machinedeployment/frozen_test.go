package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/safety/overshoot"
)

// seen is what the guard against overshoots sees of a simulated world.
func (s *simulation) seen() overshoot.Numbers {
	n, planned := overshoot.Numbers{Replicas: s.replicas, Surge: s.maxSurge}, 0
	for _, set := range s.sets {
		planned += set.desired
		n.ScalingDown = n.ScalingDown || set.acted != set.desired
		for _, machine := range set.machines {
			if !machine.deleting {
				n.Living++
			}
		}
	}
	n.ScalingDown = n.ScalingDown || planned > n.Allowed()
	return n
}

// checkNotFrozen makes sure that the guard with the shortest timeout does not take for an overshoot what planner and sets have made,
// whatever people have done.
func (s *simulation) checkNotFrozen(t *testing.T) {
	t.Helper()
	least := overshoot.Options{Up: 1, Period: time.Minute}
	if n := s.seen(); !n.ScalingDown && least.Frozen(false, n) {
		t.Fatalf("frozen: %s\n%s", least.Because(n), s.trace.String())
	}
}

// TestTheGuardAllowsWhatThePlannerMakes: the guard takes the surge for at least what the deployment goes by.
func TestTheGuardAllowsWhatThePlannerMakes(t *testing.T) {
	values := []*intstr.IntOrString{nil}
	for _, value := range []string{"0", "1", "3", "0%", "10%", "33%", "100%", "x"} {
		parsed := intstr.Parse(value)
		values = append(values, &parsed)
	}
	for _, strategy := range []clusterv1.MachineDeploymentRolloutStrategyType{"", "RollingUpdate", "OnDelete"} {
		for _, surge := range values {
			for replicas := range int32(12) {
				d := &clusterv1.MachineDeployment{}
				d.Spec.Replicas, d.Spec.Rollout.Strategy.Type = &replicas, strategy
				d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = surge
				resolved, _ := resolve(d)
				NewWithT(t).Expect(overshoot.Surge(d, int(replicas))).To(Equal(resolved.maxSurge), "%s %v %d", strategy, surge, replicas)
			}
		}
	}
}
