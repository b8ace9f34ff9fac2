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
)

// awaitTurn takes a place in the share of workers that the Cluster has, before anything is asked of its target.
func (r *Reconciler) awaitTurn(_ context.Context, s *scope) error {
	r.takeTurn(s, clusterKey(s.machine))
	return nil
}

// takeTurn says whether this reconcile may talk to the target cluster now. When it may not, it comes again soon: a worker is
// not to wait for what others of the Cluster wait for already.
func (r *Reconciler) takeTurn(s *scope, cluster client.ObjectKey) bool {
	leave, entered := r.turns.Enter(cluster)
	if !entered {
		s.turnedAway = true
		s.awaits(bootstrapv1.WaitingForConnectionReason, fmt.Sprintf(
			"the API server of Cluster %s does not answer as fast as it is asked: this CloudConfig waits for its turn", cluster.Name))
		s.wake(s.now.Add(bulkhead.Pause()))
		return false
	}
	s.leave = leave
	return true
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

// staysSaid says whether what the conditions have said stays as it is: what was found in an earlier turn, of the CloudConfig as
// it is now, tells more than that the next one is awaited.
func (s *scope) staysSaid() bool {
	said := meta.FindStatusCondition(s.config.Status.Conditions, bootstrapv1.ReadyCondition)
	switch {
	case !s.turnedAway || said == nil:
		return false
	case said.Status == metav1.ConditionTrue || said.Reason == bootstrapv1.InternalErrorReason || said.Reason == bootstrapv1.DeletingReason:
		return true
	}
	return s.config.DeletionTimestamp.IsZero() && said.ObservedGeneration == s.config.Generation && !slices.Contains(beforeTurns, said.Reason)
}
