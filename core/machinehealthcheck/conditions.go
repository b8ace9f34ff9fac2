package machinehealthcheck

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
)

// MachinesUpdatedCondition is False while the API server refuses what a MachineHealthCheck is to write: the conditions of its
// Machines, requests of external remediation, or its own label and owner. It is first set when that happens, and True once all is
// written.
const MachinesUpdatedCondition = "MachinesUpdated"

const (
	// ClusterMissingReason is the reason of RemediationAllowed while the Cluster does not exist: create it, or delete the
	// MachineHealthCheck.
	ClusterMissingReason = "ClusterDoesNotExist"
	// InvalidSpecReason is the reason of RemediationAllowed while the spec has a selector or limits that cannot be used: correct it.
	InvalidSpecReason = "InvalidSpec"
	// NodesUnreadableReason is the reason of RemediationAllowed while the Nodes cannot be read and too few Machines are known to be
	// healthy from before: see the condition RemoteConnectionProbe of the Cluster.
	NodesUnreadableReason = "NodesUnreadable"
	// FrozenReason is the reason of RemediationAllowed while unhealthy Machines are not handed over, since nothing may be replaced: see
	// the condition RemediationAllowed of the Cluster. MachineSets are asked anyway, and report it themselves.
	FrozenReason = "Frozen"
	// RefusedReason is the reason of MachinesUpdated while the API server refuses a write. The message has its words.
	RefusedReason = "RefusedByAPIServer"
	// UpdatedReason is the reason of MachinesUpdated when nothing is refused any more.
	UpdatedReason = "MachinesUpdated"
)

// maxTargets is how many names the API allows in status.targets.
const maxTargets = 10000

// setStatus derives the status from the result. Without one, numbers and conditions stay as they are.
func (s *scope) setStatus() {
	status := &s.Object.Status
	s.set(paused.Condition(s.pausedBy()))
	switch {
	case s.paused():
	case s.cluster == nil:
		s.set(conditions.Unknown(clusterv1.MachineHealthCheckRemediationAllowedCondition, ClusterMissingReason,
			"Cluster "+s.Object.Spec.ClusterName+" does not exist: create it or delete the MachineHealthCheck"))
	case s.result != nil:
		status.ObservedGeneration = s.Object.Generation
		status.ExpectedMachines = ptr.To(int32(len(s.result.Targets)))
		status.CurrentHealthy = ptr.To(int32(s.result.Healthy))
		status.RemediationsAllowed = ptr.To(int32(s.result.Remediations))
		status.Targets = s.result.Targets[:min(len(s.result.Targets), maxTargets)]
		s.set(s.allowed())
		s.set(s.updated())
		s.setDeprecated()
	case s.refused != nil:
		s.set(s.updated())
	}
}

func (s *scope) set(condition metav1.Condition) {
	if condition.Type != "" {
		conditions.Set(&s.Object.Status.Conditions, condition, s.Object.Generation, s.Now)
	}
}

// allowed is RemediationAllowed; none while it stays as it is.
func (s *scope) allowed() metav1.Condition {
	const kind = clusterv1.MachineHealthCheckRemediationAllowedCondition
	switch {
	case s.result.Invalid != "":
		return conditions.False(kind, InvalidSpecReason, s.result.Invalid)
	case !s.result.Allowed && s.result.Connecting:
		// Each start of the core would be a change of the condition, and an event.
		return metav1.Condition{}
	case !s.result.Allowed && s.result.Unreadable != "":
		return conditions.Unknown(kind, NodesUnreadableReason,
			lines(fmt.Sprintf("%s not judged: %s", machines.Plural(s.result.NotJudged, "Machine"), s.result.Unreadable), s.left()))
	case !s.result.Allowed:
		return conditions.False(kind, clusterv1.MachineHealthCheckTooManyUnhealthyReason, lines("Remediation stops: "+s.result.Message, s.left()))
	case s.result.Frozen != "":
		return conditions.False(kind, FrozenReason,
			lines(fmt.Sprintf("%s not marked for remediation: %s", machines.Plural(s.result.Held, "unhealthy Machine"), s.result.Frozen), s.left()))
	case s.result.Template != "":
		return conditions.False(kind, clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason, lines(s.result.Template, s.left()))
	}
	return conditions.True(kind, clusterv1.MachineHealthCheckRemediationAllowedReason, s.left())
}

// left reports which Machines status.targets leaves out.
func (s *scope) left() string {
	if len(s.result.Targets) <= maxTargets {
		return ""
	}
	return fmt.Sprintf("status.targets has the first %d of %d Machines; all of them are judged", maxTargets, len(s.result.Targets))
}

func lines(first, second string) string { return strings.TrimSuffix(first+"\n"+second, "\n") }

// updated is MachinesUpdated. It is left out as long as nothing was ever refused.
func (s *scope) updated() metav1.Condition {
	words := persist.Refusal(s.refused)
	if words == "" && s.result != nil {
		words = s.result.Refused
	}
	switch {
	case words != "":
		return conditions.False(MachinesUpdatedCondition, RefusedReason, words)
	case meta.FindStatusCondition(s.Object.Status.Conditions, MachinesUpdatedCondition) != nil:
		return conditions.True(MachinesUpdatedCondition, UpdatedReason, "")
	}
	return metav1.Condition{}
}

// setDeprecated sets what clients of v1beta1 read. It follows from the rest, so it costs no write.
//
//nolint:staticcheck // as long as upstream converts for them
func (s *scope) setDeprecated() {
	status := clusterv1.MachineHealthCheckV1Beta1DeprecatedStatus{}
	if s.Object.Status.Deprecated != nil && s.Object.Status.Deprecated.V1Beta1 != nil {
		status = *s.Object.Status.Deprecated.V1Beta1
	}
	status.Conditions = conditions.ToV1Beta1(s.Object.Status.Conditions, status.Conditions,
		conditions.Older{Type: clusterv1.MachineHealthCheckRemediationAllowedCondition, As: clusterv1.RemediationAllowedV1Beta1Condition})
	s.Object.Status.Deprecated = &clusterv1.MachineHealthCheckDeprecatedStatus{V1Beta1: &status}
}
