package health

import (
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/bootstrapconfig"
	"millwright.dev/contracts/inframachine"
)

// lostReasons are the reasons of the contract, by the condition of the Machine that has them.
var lostReasons = map[string]map[string]time.Duration{
	clusterv1.MachineInfrastructureReadyCondition:  inframachine.LostReasons,
	clusterv1.MachineBootstrapConfigReadyCondition: bootstrapconfig.LostReasons,
}

// lost adds that the instance no longer exists, or will never come: what its provider reports by the reasons of the contract, and by the
// failure of its older version. Those that may come back by themselves have a while for it.
func (s *findings) lost(f Facts) {
	reported := false
	for _, kind := range []string{clusterv1.MachineInfrastructureReadyCondition, clusterv1.MachineBootstrapConfigReadyCondition} {
		c := condition(f.Machine.Status.Conditions, kind)
		if c == nil || c.Status == "True" {
			continue
		}
		grace, lost := lostReasons[kind][c.Reason]
		if !lost || kind == clusterv1.MachineBootstrapConfigReadyCondition && f.Machine.Status.NodeRef.IsDefined() {
			// A machine that has joined needs no bootstrap data any more.
			continue
		}
		reported = true
		message := fmt.Sprintf("Condition %s of the Machine is %s with reason %s", kind, c.Status, c.Reason)
		if grace == 0 {
			s.add(clusterv1.MachineHealthCheckUnhealthyMachineReason, message, f.History.since(lossOf, kind, c.LastTransitionTime.Time, f.Now))
			continue
		}
		s.timed(f, clusterv1.MachineHealthCheckUnhealthyMachineReason, fmt.Sprintf("%s for more than %s", message, grace),
			f.History.since(lossOf, kind, c.LastTransitionTime.Time, f.Now), grace)
	}
	if reason := failure(f.Machine); reason != "" && !reported {
		s.add(clusterv1.MachineHealthCheckUnhealthyMachineReason, "The infrastructure provider reports a terminal failure ("+reason+")", f.Now)
	}
}

// failure is the reason of the failure that a provider of contract v1beta1 reports.
//
//nolint:staticcheck // as long as upstream has it
func failure(machine *clusterv1.Machine) string {
	if machine.Status.Deprecated == nil || machine.Status.Deprecated.V1Beta1 == nil {
		return ""
	}
	switch status := machine.Status.Deprecated.V1Beta1; {
	case status.FailureReason != nil && *status.FailureReason != "":
		return string(*status.FailureReason)
	case status.FailureMessage != nil && *status.FailureMessage != "":
		return "without a reason"
	}
	return ""
}
