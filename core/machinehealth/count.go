package machinehealth

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/health"
)

// count counts for each MachineHealthCheck what its targets are, and applies its limits.
func (s *round) count() {
	for _, t := range s.targets {
		if t.Verdict == health.Exempt {
			continue
		}
		healthy := t.healthy()
		for _, c := range t.by {
			c.result.Targets = append(c.result.Targets, t.Name)
			if healthy {
				c.result.Healthy++
			}
		}
	}
	for _, c := range s.checks {
		slices.Sort(c.result.Targets)
		limit, err := health.LimitOf(c.MachineHealthCheck, len(c.result.Targets), c.result.Healthy)
		if err != nil {
			c.result.Invalid = err.Error()
		}
		c.result.Limit, c.result.Unreadable = limit, s.unreadable
		c.allowed = c.own && !c.paused && c.result.Invalid == "" && limit.Allowed
	}
}

// healthy reports whether a target counts as healthy. While nothing can be concluded, that is what was concluded before.
func (t *target) healthy() bool {
	if t.Verdict == health.Undetermined {
		return meta.IsStatusConditionTrue(t.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	}
	return t.Verdict == health.Healthy
}

// handOver reports to whom an unhealthy Machine is to be handed over: to its owner, or by which MachineHealthCheck to an external
// remediation. Any that allows it is enough.
func (t *target) handOver() (toOwner bool, external *check) {
	if len(t.by) == 0 {
		return true, nil
	}
	for i, c := range t.by {
		if t.judgements[i].Verdict != health.Unhealthy || !c.allowed {
			continue
		}
		if !c.Spec.Remediation.TemplateRef.IsDefined() {
			toOwner = true
		} else if external == nil {
			external = c
		}
	}
	return toOwner, external
}
