package machineset

import (
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
)

// remediatingCondition is True while Machines that failed their health check are to be remediated; the message has the state of each.
func remediatingCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineSetRemediatingCondition
	if !s.machinesRead {
		return conditions.Unknown(kind, clusterv1.MachineSetRemediatingInternalErrorReason, unread(failure))
	}
	remediated := machines.Remediated(s.machines)
	if len(remediated) == 0 {
		message := ""
		if unhealthy := slices.DeleteFunc(
			slices.Clone(s.machines),
			func(m *clusterv1.Machine) bool { return !machines.FailedHealthCheck(m) },
		); len(
			unhealthy,
		) > 0 {
			message = "Unhealthy, but their MachineHealthCheck has not requested remediation: " + machines.ListNames(unhealthy)
		}
		return conditions.False(kind, clusterv1.MachineSetNotRemediatingReason, message)
	}
	text := machines.Aggregate(remediated, kind, machines.Reasons{}, func(machine *clusterv1.Machine) condition {
		return machines.ConditionOf(machine, clusterv1.MachineOwnerRemediatedCondition)
	}).Message
	if len(s.elsewhere) > 0 {
		text += "\nIn flight in other MachineSets: " + strings.Join(s.elsewhere, ", ")
	}
	return conditions.True(kind, clusterv1.MachineSetRemediatingReason, text)
}
