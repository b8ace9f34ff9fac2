//nolint:staticcheck // for clients of v1beta1, as long as upstream converts for them
package machine

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capierrors "sigs.k8s.io/cluster-api/api/deprecated/errors"

	"millwright.dev/contracts/bootstrapconfig"
	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/inframachine"
	"millwright.dev/core/external"
)

// olderConditions are the conditions that clients of v1beta1 read.
var olderConditions = []conditions.Older{
	{Type: clusterv1.MachineReadyCondition, As: clusterv1.ReadyV1Beta1Condition},
	{Type: clusterv1.MachineBootstrapConfigReadyCondition, As: clusterv1.BootstrapReadyV1Beta1Condition},
	{Type: clusterv1.MachineInfrastructureReadyCondition, As: clusterv1.InfrastructureReadyV1Beta1Condition},
	{Type: clusterv1.MachineNodeHealthyCondition, As: clusterv1.MachineNodeHealthyV1Beta1Condition},
}

// setDeprecated sets for clients of v1beta1 what that version has in its status: conditions of the older form, and the
// terminal failure, which the cluster autoscaler among others reads.
func (s *scope) setDeprecated() {
	if s.paused() {
		return
	}
	status := s.olderStatus()
	status.Conditions = conditions.ToV1Beta1(s.Object.Status.Conditions, status.Conditions, olderConditions...)
	if !s.Deleting() {
		if reason, message, known := s.terminalFailure(); known {
			status.FailureReason, status.FailureMessage = conditions.OlderFailure[capierrors.MachineStatusError](reason, message)
		}
	}
	s.Object.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &status}
}

// olderStatus is a copy of the part of the status that is for clients of v1beta1.
func (s *scope) olderStatus() clusterv1.MachineV1Beta1DeprecatedStatus {
	if s.Object.Status.Deprecated == nil || s.Object.Status.Deprecated.V1Beta1 == nil {
		return clusterv1.MachineV1Beta1DeprecatedStatus{}
	}
	return *s.Object.Status.Deprecated.V1Beta1
}

// terminalFailure is a failure that a provider of the older contract reports as terminal, or that the infrastructure object was
// deleted after the machine had been provisioned. It is cleared when the provider clears it. Known is false when an object could
// not be read.
func (s *scope) terminalFailure() (reason, message string, known bool) {
	provisioned := ptr.Deref(s.Object.Status.Initialization.InfrastructureProvisioned, false)
	if apierrors.IsNotFound(s.infrastructure.err) && provisioned {
		return string(
				capierrors.InvalidConfigurationMachineError,
			), fmt.Sprintf(
				"%s has been deleted after it had been provisioned",
				external.Name(s.infrastructure.ref),
			), true
	}
	if !s.infrastructure.found() {
		return "", "", false
	}
	infrastructure := s.infrastructure.object
	reason, message, err := inframachine.At(infrastructure.Contract).Failure(infrastructure.Unstructured)
	if err != nil || reason != "" || message != "" {
		return reason, message, err == nil
	}
	if s.bootstrap.found() && ptr.Deref(s.Object.Spec.Bootstrap.DataSecretName, "") == "" {
		config := s.bootstrap.object
		reason, message, err = bootstrapconfig.At(config.Contract).Failure(config.Unstructured)
	}
	return reason, message, err == nil
}

// failureMessage is the terminal failure that a provider reports, "" when it reports none.
func failureMessage(m *clusterv1.Machine) string {
	if m.Status.Deprecated == nil || m.Status.Deprecated.V1Beta1 == nil || m.Status.Deprecated.V1Beta1.FailureMessage == nil {
		return ""
	}
	return *m.Status.Deprecated.V1Beta1.FailureMessage
}
