package controller

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/contracts/controller/bulkhead"
	"millwright.dev/contracts/controller/outcome"
)

// awaitTurn takes a place in the share of workers that the Cluster has, before anything is asked of its target.
func (r *Reconciler) awaitTurn(_ context.Context, s *scope) outcome.Outcome {
	return r.takeTurn(s, clusterKey(s.machine))
}

// takeTurn waits until this reconcile may send requests to the target cluster. It is woken when another one of the Cluster has ended, or
// comes again soon: a worker must not wait for what others of the Cluster wait for already.
func (r *Reconciler) takeTurn(s *scope, cluster client.ObjectKey) outcome.Outcome {
	leave, entered := r.turns.EnterFor(cluster, s.Key())
	if !entered {
		s.turnedAway = true
		return s.awaitsFor(bulkhead.Pause(), bootstrapv1.WaitingForConnectionReason, fmt.Sprintf(
			"Waiting: the API server of Cluster %s does not answer in time, and other CloudConfigs of the Cluster are ahead in the queue", cluster.Name))
	}
	s.leave = leave
	return outcome.Continue()
}

// leaveTurn frees the place, if one was taken.
func (s *scope) leaveTurn() {
	if s.leave != nil {
		s.leave()
	}
}

// beforeTurns are the reasons of waits that are over when a turn is awaited.
var beforeTurns = []string{
	bootstrapv1.WaitingForOwnerMachineReason, bootstrapv1.OwnerMismatchReason, bootstrapv1.ControlPlaneUnsupportedReason,
	bootstrapv1.WaitingForClusterReason, bootstrapv1.WaitingForInfrastructureReason, bootstrapv1.WaitingForControlPlaneReason,
	bootstrapv1.WaitingForConnectionReason,
}

// keepsConditions is true when the conditions stay as they are: what was observed in an earlier turn, of the CloudConfig as it is now,
// is more than that the next one is awaited.
func (s *scope) keepsConditions() bool {
	ready := meta.FindStatusCondition(s.Object.Status.Conditions, bootstrapv1.ReadyCondition)
	switch {
	case !s.turnedAway || ready == nil:
		return false
	case ready.Status == metav1.ConditionTrue || ready.Reason == bootstrapv1.InternalErrorReason || ready.Reason == bootstrapv1.DeletingReason:
		return true
	}
	return s.Object.DeletionTimestamp.IsZero() && ready.ObservedGeneration == s.Object.Generation &&
		!slices.Contains(beforeTurns, ready.Reason)
}
