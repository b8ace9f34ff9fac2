package machines

import (
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Remediated are the Machines that a health check has found unhealthy and marked for remediation by their owner.
func Remediated(machines []*clusterv1.Machine) []*clusterv1.Machine {
	var remediated []*clusterv1.Machine
	for _, machine := range machines {
		if FailedHealthCheck(machine) && OwnerRemediationRequested(machine) {
			remediated = append(remediated, machine)
		}
	}
	return remediated
}

// FailedHealthCheck reports whether a health check has failed for a Machine.
func FailedHealthCheck(machine *clusterv1.Machine) bool {
	return meta.IsStatusConditionFalse(machine.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
}

// OwnerRemediationRequested reports whether the health check asks the owner of a Machine to remediate it.
func OwnerRemediationRequested(machine *clusterv1.Machine) bool {
	return meta.IsStatusConditionFalse(machine.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
}
