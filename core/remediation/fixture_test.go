package remediation_test

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

// handed makes a Machine one that a health check has found unhealthy and handed to its owner.
func handed(m *clusterv1.Machine) {
	Unhealthy(m)
	SetConditions(m, conditions.False(clusterv1.MachineOwnerRemediatedCondition, "WaitingForRemediation", ""))
}

// announce is what its owner says when it replaces it.
func announce(m *clusterv1.Machine) {
	SetConditions(
		m,
		conditions.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineSetMachineRemediationMachineDeletingReason, ""),
	)
}

// begun makes it one whose replacement its owner has announced.
func begun(m *clusterv1.Machine) {
	handed(m)
	announce(m)
}

// replaces makes a Machine one that replaces another.
func replaces(name string, change ...func(*remediation.Record)) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		record := remediation.Record{Machine: name, Since: Epoch}
		for _, f := range change {
			f(&record)
		}
		m.Annotations = map[string]string{remediation.ReplacesAnnotation: record.String()}
	}
}

// wasAvailable makes its record say that it was available.
func wasAvailable(r *remediation.Record) { r.Available = &Epoch }
