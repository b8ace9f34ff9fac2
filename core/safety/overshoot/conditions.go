package overshoot

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/conditions"
)

// The condition of MachineDeployments and MachineSets, and its reasons.
const (
	// FrozenCondition is True while no Machine is created.
	FrozenCondition = "Frozen"
	// OvershootReason means that there are more Machines than can be meant; the message has the numbers.
	OvershootReason = "Overshoot"
	// FrozenByLabelReason means that a user has set FrozenLabel.
	FrozenByLabelReason = "FrozenByLabel"
	// NotFrozenReason means that Machines are created.
	NotFrozenReason = "NotFrozen"
)

// Condition is the condition Frozen of an object. owner is the deployment of a set, nil if it has none.
func (g *Guard) Condition(object, owner metav1.Object) metav1.Condition {
	reason, message := g.Of(object, owner)
	if reason == "" {
		return conditions.False(FrozenCondition, NotFrozenReason, "")
	}
	return conditions.True(FrozenCondition, reason, "No Machine is created: "+message)
}
