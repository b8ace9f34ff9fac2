package machinedeployment

import (
	"context"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/admission/defaults"
	"millwright.dev/core/admission/validate"
)

// applyDefaults fills in what admission fills in, in memory, for a deployment that has passed none.
func (r *Reconciler) applyDefaults(_ context.Context, s *scope) outcome.Outcome {
	withDefaults(s.deployment)
	// It is no change: what is left open stays open in the object.
	s.before.Labels, s.before.Spec = s.deployment.Labels, *s.deployment.Spec.DeepCopy()
	return outcome.Continue()
}

// withDefaults fills in what admission fills in. The number of replicas that there was before, which admission knows
// from the object before the update, is the one that the status tells.
func withDefaults(deployment *clusterv1.MachineDeployment) {
	before := &clusterv1.MachineDeployment{}
	before.Spec.Replicas = deployment.Status.Replicas
	defaults.MachineDeployment(deployment, before)
}

// openForAutoscaler fills in, to be written, what the cluster autoscaler reads of a deployment that carries its
// limits and has passed no admission: without a number of replicas it takes it for no node group, and an empty
// selector is to it one for all Machines.
func openForAutoscaler(deployment *clusterv1.MachineDeployment) {
	_, low := deployment.Annotations[clusterv1.AutoscalerMinSizeAnnotation]
	_, high := deployment.Annotations[clusterv1.AutoscalerMaxSizeAnnotation]
	if !low || !high {
		return
	}
	filled := deployment.DeepCopy()
	withDefaults(filled)
	deployment.Spec.Replicas = filled.Spec.Replicas
	if selector := &deployment.Spec.Selector; len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		*selector = filled.Spec.Selector
		deployment.Spec.Template.Labels = filled.Spec.Template.Labels
	}
}

// invalid says what is wrong with a deployment, each with the field and what to do. Admission refuses such
// deployments where it is installed; without it, the deployment waits for its correction. It is not held up by
// annotations for which something can be assumed.
func invalid(deployment *clusterv1.MachineDeployment) []string {
	var found []string
	for _, problem := range validate.MachineDeployment(deployment, nil) {
		if !strings.HasPrefix(problem.Field, "metadata.annotations") || deployment.Spec.Replicas == nil {
			found = append(found, problem.Error())
		}
	}
	return found
}
