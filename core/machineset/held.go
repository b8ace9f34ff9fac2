package machineset

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
)

// The condition RemediationAllowed and its reason when it is True, whose names are those of MachineHealthChecks. The other reasons are
// those of package remediation, and notReplaceableReason.
const (
	remediationAllowedConditionType = clusterv1.MachineHealthCheckRemediationAllowedCondition
	remediationAllowedReason        = clusterv1.MachineHealthCheckRemediationAllowedReason
)

var (
	blockedMachines = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "millwright_remediation_blocked",
		Help: "Unhealthy Machines of a MachineSet that are not replaced now, by reason.",
	}, []string{"namespace", "machineset", "reason"})
	replacements = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_replacements_total",
		Help: "Unhealthy Machines that were deleted or preserved to be replaced, by namespace and name of the Cluster and by the reason of HealthCheckSucceeded.",
	}, []string{"cluster", "reason"})
)

func init() { metrics.Registry.MustRegister(blockedMachines, replacements) }

// held is why unhealthy Machines of a set are not replaced.
type held struct {
	messages map[string]string
	counts   map[string]int
	// numbers reports what is in flight.
	numbers string
}

// add notes that n Machines are not replaced. Of several messages of one reason the first in their order is kept.
func (h *held) add(reason, message string, n int) {
	if h.counts == nil {
		h.messages, h.counts = map[string]string{}, map[string]int{}
	}
	if kept, ok := h.messages[reason]; !ok || message < kept {
		h.messages[reason] = message
	}
	h.counts[reason] += n
}

// remediationAllowedCondition is False while unhealthy Machines are not replaced, with the reason that most have.
func remediationAllowedCondition(s *scope, failure error) condition {
	if !s.machinesRead {
		return conditions.Unknown(remediationAllowedConditionType, clusterv1.InternalErrorReason, unread(failure))
	}
	_, notice := machines.PreserveMax(s.deployment, s.preserveMax)
	if len(s.held.counts) == 0 {
		return conditions.True(remediationAllowedConditionType, remediationAllowedReason, notice)
	}
	reasons := slices.Sorted(maps.Keys(s.held.counts))
	most := slices.MaxFunc(reasons, func(a, b string) int { return s.held.counts[a] - s.held.counts[b] })
	text := s.held.numbers
	for _, reason := range reasons {
		text += fmt.Sprintf("\n* %s: %s", machines.Plural(s.held.counts[reason], "Machine"), s.held.messages[reason])
	}
	if notice != "" {
		text += "\n* " + notice
	}
	return conditions.False(remediationAllowedConditionType, most, trimLine(text))
}

func trimLine(text string) string {
	if text != "" && text[0] == '\n' {
		return text[1:]
	}
	return text
}

// heldBecause is the reason for which a set holds up replacements; "" when it does not.
func heldBecause(set *clusterv1.MachineSet) string {
	found := meta.FindStatusCondition(set.Status.Conditions, remediationAllowedConditionType)
	if found == nil || found.Status != metav1.ConditionFalse {
		return ""
	}
	return found.Reason
}

// recordHeld records the event when there is a reason that was not there before, and sets the metric. It comes after the condition was
// written. After a restart the condition of before has one reason alone.
func (r *Reconciler) recordHeld(s *scope, before string) {
	if shownHeld.set(s.Key(), s.held.counts, before) && heldBecause(s.Object) != "" {
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, remediationBlockedEvent, "Remediate", "%s",
			meta.FindStatusCondition(s.Object.Status.Conditions, remediationAllowedConditionType).Message)
	}
}

// shownHeld are the sets that the metric has.
var shownHeld heldSets

// heldSets remembers which sets the metric has, so that nothing is looked up for all others.
type heldSets struct {
	mu sync.Mutex
	// sets has the reasons of each.
	sets map[types.NamespacedName]map[string]int
}

// set notes the reasons of a set, and reports whether one of them is new: neither known, nor the one of before.
func (h *heldSets) set(key types.NamespacedName, counts map[string]int, before string) (fresh bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.sets[key]
	for reason := range counts {
		if _, ok := known[reason]; !ok && reason != before {
			fresh = true
		}
	}
	if known != nil {
		blockedMachines.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "machineset": key.Name})
		delete(h.sets, key)
	}
	if len(counts) == 0 {
		return false
	}
	if h.sets == nil {
		h.sets = map[types.NamespacedName]map[string]int{}
	}
	h.sets[key] = maps.Clone(counts)
	for reason, n := range counts {
		blockedMachines.WithLabelValues(key.Namespace, key.Name, reason).Set(float64(n))
	}
	return fresh
}

// forgetHeld drops a set that no longer exists.
func forgetHeld(key types.NamespacedName) {
	shownHeld.set(key, nil, "")
	showRefused(key, 0)
}

// forgetReplacements drops what was counted of a Cluster that is being deleted.
func forgetReplacements(cluster types.NamespacedName) {
	replacements.DeletePartialMatch(prometheus.Labels{"cluster": cluster.String()})
}

// maxReasons bounds the label reason: conditions are written by others.
const maxReasons = 50

// replacementReasons are the values of the label reason.
var replacementReasons boundedReasons

// boundedReasons keeps the number of values of a label small.
type boundedReasons struct {
	mu   sync.Mutex
	seen map[string]bool
}

// of is the reason itself, or "other" once there are too many.
func (b *boundedReasons) of(reason string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.seen[reason] {
		if len(b.seen) >= maxReasons {
			return "other"
		}
		if b.seen == nil {
			b.seen = map[string]bool{}
		}
		b.seen[reason] = true
	}
	return reason
}
