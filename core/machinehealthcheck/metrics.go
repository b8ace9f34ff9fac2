package machinehealthcheck

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/core/machinehealth"
)

var heldMachines = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "millwright_healthcheck_held",
	Help: "Unhealthy Machines that a MachineHealthCheck does not mark for remediation, and Machines that it does not judge since Nodes cannot be read, " +
		"by the reason of its condition RemediationAllowed.",
}, []string{"namespace", "machinehealthcheck", "reason"})

func init() { metrics.Registry.MustRegister(heldMachines) }

// shownHeld are the MachineHealthChecks that the metric has.
var shownHeld heldChecks

// heldChecks remembers which MachineHealthChecks the metric has, so that nothing is looked up for all others.
type heldChecks struct {
	mu     sync.Mutex
	checks map[types.NamespacedName]bool
}

// set sets the number of Machines that a MachineHealthCheck holds back; 0 removes it.
func (h *heldChecks) set(key types.NamespacedName, reason string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.checks[key] {
		heldMachines.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "machinehealthcheck": key.Name})
		delete(h.checks, key)
	}
	if n == 0 {
		return
	}
	if h.checks == nil {
		h.checks = map[types.NamespacedName]bool{}
	}
	h.checks[key] = true
	heldMachines.WithLabelValues(key.Namespace, key.Name, reason).Set(float64(n))
}

// measure sets the metric by the conditions. Until there is a result for a spec that has changed, it stays.
func (s *scope) measure() {
	c := meta.FindStatusCondition(s.Object.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	switch {
	case s.paused() || s.cluster == nil:
		shownHeld.set(s.Key(), "", 0)
	case s.result == nil || c == nil:
	case c.Status == metav1.ConditionTrue:
		shownHeld.set(s.Key(), "", 0)
	default:
		shownHeld.set(s.Key(), c.Reason, heldBy(*s.result, c.Reason))
	}
}

// heldBy is how many Machines are held back for that reason: by a freeze those that nothing had begun with before, and while Nodes cannot
// be read also those that are not judged.
func heldBy(result machinehealth.Result, reason string) int {
	switch reason {
	case FrozenReason:
		return result.Held
	case NodesUnreadableReason:
		return result.Unhealthy + result.NotJudged
	}
	return result.Unhealthy
}
