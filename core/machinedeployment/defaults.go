package machinedeployment

import (
	"context"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/admission/defaults"
	"millwright.dev/core/admission/validate"
)

// applyDefaults sets in memory what admission would have set, for a deployment that has passed none.
func (r *Reconciler) applyDefaults(_ context.Context, s *scope) outcome.Outcome {
	s.defaulted = true
	s.refresh()
	return outcome.Continue()
}

// setDefaults sets the defaults of admission. The previous number of replicas, which admission knows from the object before the
// update, is the one in the status.
func setDefaults(deployment *clusterv1.MachineDeployment) {
	before := &clusterv1.MachineDeployment{}
	before.Spec.Replicas = deployment.Status.Replicas
	defaults.MachineDeployment(deployment, before)
}

// setAutoscalerDefaults sets, to be written, what the cluster autoscaler reads of a deployment that has its limits and has passed no
// admission: the autoscaler ignores a deployment without a number of replicas, and takes an empty selector for one that matches all
// Machines.
func setAutoscalerDefaults(deployment *clusterv1.MachineDeployment) {
	_, low := deployment.Annotations[clusterv1.AutoscalerMinSizeAnnotation]
	_, high := deployment.Annotations[clusterv1.AutoscalerMaxSizeAnnotation]
	if !low || !high {
		return
	}
	filled := deployment.DeepCopy()
	setDefaults(filled)
	deployment.Spec.Replicas = filled.Spec.Replicas
	if selector := &deployment.Spec.Selector; len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		*selector = filled.Spec.Selector
		deployment.Spec.Template.Labels = filled.Spec.Template.Labels
	}
}

// specErrors lists what is wrong with a deployment, each with the field and what to do. Admission refuses such
// deployments where it is installed; without it, a condition of the deployment asks for the correction. Errors of annotations that have a
// default do not count.
func specErrors(deployment *clusterv1.MachineDeployment) []string {
	var found []string
	for _, wrong := range validate.MachineDeployment(deployment, nil) {
		if !strings.HasPrefix(wrong.Field, "metadata.annotations") || deployment.Spec.Replicas == nil {
			found = append(found, wrong.Error())
		}
	}
	return found
}
