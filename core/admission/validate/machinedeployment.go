package validate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineDeployment validates a MachineDeployment, and its change from the old one.
func MachineDeployment(deployment, old *clusterv1.MachineDeployment) field.ErrorList {
	found := deploymentAlone(deployment)
	if old != nil {
		found = ratchet(found, deploymentAlone(old))
		found = append(found, sameCluster(deployment.Spec.ClusterName, old.Spec.ClusterName)...)
		found = append(found, sameDeploymentSelector(deployment, old)...)
	}
	return found
}

func deploymentAlone(deployment *clusterv1.MachineDeployment) field.ErrorList {
	spec := &deployment.Spec
	found := labelName(deployment.Name)
	found = append(found, pastedOwner(deployment)...)
	found = append(found, pastedAnnotations(field.NewPath("metadata", "annotations"), deployment.Annotations)...)
	found = append(found, replicas(spec.Replicas, deployment.Annotations)...)
	found = append(found, deploymentSelector(deployment)...)
	found = append(found, template(&spec.Template, spec.ClusterName)...)
	// Its sets have its name and a random suffix.
	found = append(found, machineNaming(spec.MachineNaming, spec.ClusterName, deployment.Name+"-"+samples[0])...)
	found = append(found, strategy(field.NewPath("spec", "rollout", "strategy"), &spec.Rollout.Strategy)...)
	found = append(found, numberOrPercent(field.NewPath("spec", "remediation", "maxInFlight"), spec.Remediation.MaxInFlight)...)
	// Annotations of a deployment go to its sets.
	found = append(found, skippedPreflightChecks(deployment.Annotations)...)
	return append(found, annotations(deployment.Annotations, deploymentAnnotations)...)
}

// labelName refuses a name that is no label value, which it must be where other objects have it as one.
func labelName(name string) field.ErrorList {
	messages := validation.IsValidLabelValue(name)
	if len(messages) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name,
		"is the value of a label on what belongs to the object, and cannot be one ("+strings.Join(messages, "; ")+"): use another name")}
}

// strategy validates how a deployment rolls out.
func strategy(path *field.Path, from *clusterv1.MachineDeploymentRolloutStrategy) field.ErrorList {
	var found field.ErrorList
	switch from.Type {
	case "", clusterv1.RollingUpdateMachineDeploymentStrategyType, clusterv1.OnDeleteMachineDeploymentStrategyType:
	default:
		found = append(found, field.NotSupported(path.Child("type"), from.Type, []clusterv1.MachineDeploymentRolloutStrategyType{
			clusterv1.RollingUpdateMachineDeploymentStrategyType, clusterv1.OnDeleteMachineDeploymentStrategyType}))
	}
	rolling := path.Child("rollingUpdate")
	surge, unavailable := from.RollingUpdate.MaxSurge, from.RollingUpdate.MaxUnavailable
	found = append(found, numberOrPercent(rolling.Child("maxSurge"), surge)...)
	found = append(found, numberOrPercent(rolling.Child("maxUnavailable"), unavailable)...)
	if isNumberZero(surge) && isNumberZero(unavailable) {
		found = append(
			found,
			field.Invalid(rolling, "maxSurge 0, maxUnavailable 0", "nothing could ever be replaced: set one of them to at least 1"),
		)
	}
	return found
}

// isNumberZero reports whether 0 is meant literally. A percentage that comes to nothing is no error: then one Machine
// may be unavailable.
func isNumberZero(value *intstr.IntOrString) bool {
	return value != nil && value.Type == intstr.Int && value.IntVal == 0
}
