package machinehealth

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/health"
)

// count counts for each MachineHealthCheck what its targets are, and applies its limits.
func (s *round) count() {
	for _, t := range s.targets {
		if t.State == health.Exempt {
			continue
		}
		healthy := t.healthy()
		for i, c := range t.by {
			c.result.Targets = append(c.result.Targets, t.Name)
			if healthy {
				c.result.Healthy++
			}
			switch t.judgements[i].State {
			case health.Unhealthy:
				c.result.Unhealthy++
			case health.Undetermined:
				if s.unreadable != "" {
					c.result.NotJudged++
				}
			case health.Exempt, health.Pending, health.Healthy:
			}
		}
	}
	for _, c := range s.checks {
		slices.Sort(c.result.Targets)
		limit, err := health.LimitOf(c.MachineHealthCheck, len(c.result.Targets), c.result.Healthy)
		if err != nil {
			c.result.Invalid = err.Error()
		}
		c.result.Limit, c.result.Unreadable, c.result.Connecting = limit, s.unreadable, s.connecting
		c.allowed = c.own && !c.paused && c.result.Invalid == "" && limit.Allowed
	}
	s.countHeld()
}

// countHeld counts for each MachineHealthCheck the unhealthy Machines that are not handed over because of a freeze.
func (s *round) countHeld() {
	if !s.frozen.Active() {
		return
	}
	for _, t := range s.targets {
		for i, c := range t.by {
			if c.allowed && t.judgements[i].State == health.Unhealthy && !t.begun(c) && s.holds(t, c) {
				c.result.Held++
				c.result.Frozen = s.frozen.Reason + ": " + s.frozen.Message
			}
		}
	}
}

// holds reports whether an unhealthy Machine is not marked for remediation now. A MachineSet decides and reports that itself.
// Nothing else knows of a freeze: neither another owner, such as a control plane, nor external remediation.
func (s *round) holds(t *target, by *check) bool {
	return s.frozen.Active() && (by.Spec.Remediation.TemplateRef.IsDefined() || !ofMachineSet(t.Machine))
}

// ofMachineSet reports whether a MachineSet controls a Machine.
func ofMachineSet(machine *clusterv1.Machine) bool {
	owner := metav1.GetControllerOf(machine)
	return owner != nil && owner.Kind == "MachineSet"
}

// begun reports whether a remediation by a MachineHealthCheck is under way.
func (t *target) begun(by *check) bool {
	if by.Spec.Remediation.TemplateRef.IsDefined() {
		return requested(meta.FindStatusCondition(t.Status.Conditions, clusterv1.MachineExternallyRemediatedCondition))
	}
	asked := meta.FindStatusCondition(t.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
	return asked != nil && asked.Status == metav1.ConditionFalse && !slices.Contains(withdrawable, asked.Reason)
}

// healthy reports whether a target counts as healthy. While nothing can be concluded, that is what was concluded before.
func (t *target) healthy() bool {
	if t.State == health.Undetermined {
		return meta.IsStatusConditionTrue(t.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	}
	return t.State == health.Healthy
}

// handOver reports who is to remediate an unhealthy Machine: its owner, or by which MachineHealthCheck an external
// remediation. Any that allows it is enough.
func (s *round) handOver(t *target) (toOwner bool, external *check) {
	if len(t.by) == 0 {
		return !s.frozen.Active() || ofMachineSet(t.Machine), nil
	}
	for i, c := range t.by {
		if t.judgements[i].State != health.Unhealthy || !c.allowed || s.holds(t, c) {
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
