package machinedeployment

import (
	"slices"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/core/machines"
)

// setStatus derives the status of the deployment from what was read and done. failure is the error that ended the
// reconcile, if one did.
func (s *scope) setStatus(failure error) {
	status := &s.Object.Status
	set := func(condition condition) {
		conditions.Set(&status.Conditions, condition, s.Object.Generation, s.Now)
	}
	set(paused.Condition(s.paused))
	if len(s.paused) > 0 {
		// While the deployment is paused the rest of the status is left alone.
		return
	}
	if s.settings.selector != nil {
		status.Selector = s.settings.selector.String()
	}
	if s.read {
		count(s)
	}
	status.Phase = string(phase(s))
	for _, derive := range derivations {
		set(derive(s, failure))
	}
	if s.read {
		status.ObservedGeneration = s.Object.Generation
	}
}

// wanted is how many Machines there shall be.
func wanted(s *scope) int {
	if s.Deleting() {
		return 0
	}
	return machines.Replicas(s.deployment.Spec.Replicas, s.deployment.Annotations)
}

// existing is how many Machines there are, those included that are being deleted.
func existing(s *scope) int { return len(s.allMachines()) }

// upToDate are the Machines that are what the deployment wants.
func upToDate(s *scope) []*clusterv1.Machine {
	var all []*clusterv1.Machine
	for _, set := range s.sets {
		if len(whyOutdated(s, set)) == 0 {
			all = append(all, s.machines[set.UID]...)
		}
	}
	// One that is being updated in place is neither what it was nor what it shall be.
	return slices.DeleteFunc(all, machines.Updating)
}

// availableMachines counts those that serve.
func availableMachines(s *scope) int {
	number := 0
	for _, machine := range s.allMachines() {
		if machines.Available(machine) {
			number++
		}
	}
	return number
}

// count sets the numbers of Machines.
func count(s *scope) {
	all := s.allMachines()
	ready, available := machines.Serving(all)
	total, current := int32(len(all)), int32(len(upToDate(s)))
	status := &s.Object.Status
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = &total, &ready, &available
	status.UpToDateReplicas = &current
	status.Versions = machines.VersionsOf(all)
	if status.Deprecated == nil {
		status.Deprecated = &clusterv1.MachineDeploymentDeprecatedStatus{}
	}
	if status.Deprecated.V1Beta1 == nil {
		status.Deprecated.V1Beta1 = &clusterv1.MachineDeploymentV1Beta1DeprecatedStatus{}
	}
	older := status.Deprecated.V1Beta1
	//nolint:staticcheck // clients of v1beta1 read them
	older.ReadyReplicas, older.AvailableReplicas, older.UpdatedReplicas = ready, available, current
	older.UnavailableReplicas = max(0, max(total, int32(wanted(s)))-available) //nolint:staticcheck // clients of v1beta1 read them
}

// phase is a function of three numbers: of Machines that shall exist, that do, and that are available. It is Unknown until
// they are known.
func phase(s *scope) clusterv1.MachineDeploymentPhase {
	have, want := int(ptr.Deref(s.Object.Status.Replicas, -1)), wanted(s)
	switch {
	case s.Deleting():
		return clusterv1.MachineDeploymentPhaseScalingDown
	case !s.read:
		return clusterv1.MachineDeploymentPhaseUnknown
	case have > want:
		return clusterv1.MachineDeploymentPhaseScalingDown
	case availableMachines(s) < want:
		return clusterv1.MachineDeploymentPhaseScalingUp
	default:
		return clusterv1.MachineDeploymentPhaseRunning
	}
}
