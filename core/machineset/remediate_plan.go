package machineset

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
)

// ownerRemediated describes what becomes of an unhealthy Machine, in the condition by which health check and owner
// communicate.
func ownerRemediated(reason, message string) condition {
	return conditions.False(clusterv1.MachineOwnerRemediatedCondition, reason, message)
}

// recovered are the Machines whose health check succeeds again before they were remediated: the owner is no longer
// asked for anything.
func recovered(all []*clusterv1.Machine) []*clusterv1.Machine {
	var well []*clusterv1.Machine
	for _, machine := range all {
		if machine.DeletionTimestamp.IsZero() && machines.OwnerRemediationRequested(machine) &&
			meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition) {
			well = append(well, machine)
		}
	}
	return well
}

// ofCurrentRevision reports whether a set holds what its deployment is at. Those of earlier revisions go with the
// rollout. It goes by the revisions that the deployment has given out, and by the templates before there are any: a
// deployment that is paused keeps its revision, and so its Machines' remediation.
func ofCurrentRevision(s *scope) bool {
	if s.deployment == nil {
		return true
	}
	wanted, ok := s.deployment.Annotations[clusterv1.RevisionAnnotation]
	has, okSet := s.Object.Annotations[clusterv1.RevisionAnnotation]
	if ok && okSet {
		return wanted == has
	}
	return len(s.outdated) == 0
}

// missingDeployment reports that the deployment of the set has not been read, or no longer exists: then neither its limits are known
// nor whether the set is the current one. Its event, or the end of the set, comes.
func (s *scope) missingDeployment() string {
	owner := metav1.GetControllerOf(s.Object)
	if s.deployment != nil || owner == nil || owner.Kind != "MachineDeployment" {
		return ""
	}
	return fmt.Sprintf("Cannot read MachineDeployment %s, which has the limits", owner.Name)
}

// deferredBecause describes what else keeps a Machine from being remediated.
func deferredBecause(blockers []string) condition {
	return ownerRemediated(clusterv1.MachineSetMachineRemediationDeferredReason,
		machines.List("Waiting: a replacement cannot be created now:", blockers))
}

// notOfCurrentRevision leaves a Machine to the rollout, which replaces it; while that is paused nothing does.
func notOfCurrentRevision(deployment *clusterv1.MachineDeployment) condition {
	ends := "left to the rollout"
	if blockers := pausedRollout(deployment); len(blockers) > 0 {
		ends = blockers[0]
	}
	return ownerRemediated(clusterv1.MachineSetMachineCannotBeRemediatedReason, fmt.Sprintf(
		"Not of the current revision of MachineDeployment %s: %s", deployment.Name, ends))
}

// replacedOnDelete reports whether outdated Machines are replaced when they are deleted, and not before. No rollout takes an
// unhealthy one then; its remediation is the deletion, and the current set replaces it.
func replacedOnDelete(deployment *clusterv1.MachineDeployment) bool {
	return deployment.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType
}

// pausedRollout reports that outdated Machines are not replaced now.
func pausedRollout(deployment *clusterv1.MachineDeployment) []string {
	if !ptr.Deref(deployment.Spec.Paused, false) {
		return nil
	}
	return []string{
		fmt.Sprintf("MachineDeployment %s is paused (spec.paused): unpause it to replace its outdated Machines", deployment.Name),
	}
}

func remediationBegun() condition {
	return ownerRemediated(clusterv1.MachineSetMachineRemediationMachineDeletingReason, "The Machine is deleted and will be replaced")
}
