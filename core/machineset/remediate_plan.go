package machineset

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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

// toRemediate are the Machines that are to be remediated, in the order in which they are: those whose remediation has
// begun, so that an interrupted one is not exchanged for another; those with the annotation
// cluster.x-k8s.io/remediate-machine; then the newest first, since a Machine that never came up has no load.
func toRemediate(all []*clusterv1.Machine) []*clusterv1.Machine {
	unhealthy := slices.DeleteFunc(machines.Remediated(all), func(machine *clusterv1.Machine) bool {
		return !machine.DeletionTimestamp.IsZero()
	})
	slices.SortFunc(unhealthy, func(a, b *clusterv1.Machine) int {
		return cmp.Or(
			first(begun(a), begun(b)),
			first(demanded(a), demanded(b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return unhealthy
}

// first sorts what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func demanded(machine *clusterv1.Machine) bool {
	_, ok := machine.Annotations[clusterv1.RemediateMachineAnnotation]
	return ok
}

// begun reports whether the remediation of a Machine has begun.
func begun(machine *clusterv1.Machine) bool {
	found := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
	return found != nil && found.Status == metav1.ConditionFalse &&
		found.Reason == clusterv1.MachineSetMachineRemediationMachineDeletingReason
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

// unlimited is the limit of remediations where none is set.
const unlimited = math.MaxInt

// remediationLimit is how many Machines of a deployment may be remediated at once: its
// spec.remediation.maxInFlight, a percentage of its replicas rounded up. A standalone set has no such field and no
// limit. blocker is what is wrong with the field.
func remediationLimit(deployment *clusterv1.MachineDeployment) (limit int, blocker string) {
	if deployment == nil || deployment.Spec.Remediation.MaxInFlight == nil {
		return unlimited, ""
	}
	value := deployment.Spec.Remediation.MaxInFlight
	limit, err := intstr.GetScaledValueFromIntOrPercent(value, machines.Replicas(deployment.Spec.Replicas, deployment.Annotations), true)
	if err != nil {
		return 0, fmt.Sprintf("spec.remediation.maxInFlight %q of MachineDeployment %s is neither a number nor a percentage: correct it",
			value.String(), deployment.Name)
	}
	return limit, ""
}

// deferredByLimit reports that the limit is reached. It names no other Machine: the text of a hundred that wait shall
// not change with each that is done.
func deferredByLimit(deployment *clusterv1.MachineDeployment, limit int) condition {
	value := deployment.Spec.Remediation.MaxInFlight.String()
	message := fmt.Sprintf("Waits until others are done: spec.remediation.maxInFlight %s of MachineDeployment %s allows %s at once",
		value, deployment.Name, machines.Plural(limit, "remediation"))
	if limit <= 0 {
		message = fmt.Sprintf("Not remediated: spec.remediation.maxInFlight %s of MachineDeployment %s allows none", value, deployment.Name)
	}
	return ownerRemediated(clusterv1.MachineSetMachineRemediationDeferredReason, message)
}

// deferredBecause describes what else keeps a Machine from being remediated.
func deferredBecause(blockers []string) condition {
	return ownerRemediated(clusterv1.MachineSetMachineRemediationDeferredReason,
		list("Waits, since the Machine could not be replaced now:", blockers))
}

func notOfCurrentRevision(deployment *clusterv1.MachineDeployment) condition {
	return ownerRemediated(clusterv1.MachineSetMachineCannotBeRemediatedReason, fmt.Sprintf(
		"The Machine is not of the current revision of MachineDeployment %s: it goes with the rollout", deployment.Name))
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
		fmt.Sprintf("spec.paused of MachineDeployment %s is true, and it replaces no outdated Machine: set it to false", deployment.Name),
	}
}

func remediationBegun() condition {
	return ownerRemediated(clusterv1.MachineSetMachineRemediationMachineDeletingReason, "The Machine is deleted and will be replaced")
}
