package machine

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/external"
)

// longStep is how long a step takes that gets an event of its own when it is over. Each event is a request: a Machine
// that runs within the time costs one when its Node joins and one when it goes, whose notes name the quick steps before.
const longStep = time.Minute

// recordProgressEvents records the events for what has changed since the Machine was read. The state as read is persisted, so that
// another process does not repeat them.
func (s *scope) recordProgressEvents() {
	if s.Deleting() || s.paused() {
		return
	}
	before, after := s.Original.Status, s.Object.Status
	// A step that comes after the Node has joined has no later event that could name it.
	own := s.Now.Sub(s.Original.CreationTimestamp.Time) >= longStep || before.NodeRef.IsDefined()
	if own && s.bootstrap.ref.IsDefined() &&
		became(before.Initialization.BootstrapDataSecretCreated, after.Initialization.BootstrapDataSecretCreated) {
		s.events.Normal(
			BootstrapDataReadyEvent,
			"Bootstrap",
			"%s",
			"The bootstrap data are in Secret "+ptr.Deref(s.Object.Spec.Bootstrap.DataSecretName, ""),
		)
	}
	if own && became(before.Initialization.InfrastructureProvisioned, after.Initialization.InfrastructureProvisioned) {
		s.events.Normal(
			InfrastructureProvisionedEvent,
			"Provision",
			"%s",
			external.Name(s.infrastructure.ref)+" is provisioned with the provider ID "+s.Object.Spec.ProviderID,
		)
	}
	if !before.NodeRef.IsDefined() && after.NodeRef.IsDefined() {
		s.events.Normal(NodeLinkedEvent, "Link", "%s", s.joined())
	}
}

func became(before, after *bool) bool { return !ptr.Deref(before, false) && ptr.Deref(after, false) }

// joined describes that the Node has joined, and the steps before it, of which quick ones have no events of their own.
func (s *scope) joined() string {
	var steps []string
	initialization := s.Object.Status.Initialization
	if s.bootstrap.ref.IsDefined() && ptr.Deref(initialization.BootstrapDataSecretCreated, false) {
		steps = append(steps, "Bootstrap data ready"+s.doneAfter(clusterv1.MachineBootstrapConfigReadyCondition))
	}
	if ptr.Deref(initialization.InfrastructureProvisioned, false) {
		steps = append(
			steps,
			"infrastructure "+s.Object.Spec.ProviderID+" provisioned"+s.doneAfter(clusterv1.MachineInfrastructureReadyCondition),
		)
	}
	steps = append(steps, fmt.Sprintf("Node %s joined after %s", s.Object.Status.NodeRef.Name, duration(s.Original.CreationTimestamp, s.Now)))
	note := strings.Join(steps, ", ")
	return strings.ToUpper(note[:1]) + note[1:]
}

// doneAfter describes after how long a step was done, by the persisted time of its condition; "" without that time, as when a
// provider's own condition is not True.
func (s *scope) doneAfter(conditionType string) string {
	condition := meta.FindStatusCondition(s.Object.Status.Conditions, conditionType)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf(" after %s", duration(s.Original.CreationTimestamp, condition.LastTransitionTime.Time))
}

func duration(from metav1.Time, to time.Time) time.Duration {
	return max(0, to.Sub(from.Time)).Round(time.Second)
}
