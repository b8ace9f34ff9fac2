package machinedeployment

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
	"millwright.dev/core/naming"
)

// Defaults of spec.rollout.strategy.rollingUpdate, those of Cluster API.
var (
	DefaultMaxSurge       = intstr.FromInt32(1)
	DefaultMaxUnavailable = intstr.FromInt32(0)
)

// resolve sets the defaults of admission, resolves percentages, and returns what is
// wrong with the spec, each with the field and what to do.
func resolve(deployment *clusterv1.MachineDeployment) (settings, []string) {
	var found []string
	add := func(wrong string, args ...any) { found = append(found, fmt.Sprintf(wrong, args...)) }
	spec := &deployment.Spec
	result := settings{
		replicas: machines.Replicas(spec.Replicas, deployment.Annotations),
		strategy: spec.Rollout.Strategy.Type,
		paused:   ptr.Deref(spec.Paused, false),
	}
	result.recreate = recreates(deployment) && result.strategy != clusterv1.OnDeleteMachineDeploymentStrategyType
	switch result.strategy {
	case "":
		result.strategy = clusterv1.RollingUpdateMachineDeploymentStrategyType
	case clusterv1.RollingUpdateMachineDeploymentStrategyType, clusterv1.OnDeleteMachineDeploymentStrategyType:
	default:
		add("spec.rollout.strategy.type %q is not known: use RollingUpdate or OnDelete", result.strategy)
	}
	found = append(found, result.resolveLimits(&spec.Rollout.Strategy.RollingUpdate)...)
	if invalid := validation.IsValidLabelValue(deployment.Name); len(invalid) > 0 {
		add("metadata.name %q cannot be a label value (%s): use a shorter name", deployment.Name, invalid[0])
	}
	selector := effectiveSelector(deployment)
	matcher, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		add("spec.selector is invalid: %v", err)
	} else if !matcher.Matches(labels.Set(naming.SetLabels(deployment))) {
		add("spec.selector %q does not select the labels in spec.template.metadata.labels: "+
			"its own MachineSets would be unknown to it; make them agree", matcher)
	}
	result.selector = matcher
	return result, append(found, machines.TemplateErrors(&spec.Template, spec.ClusterName)...)
}

// resolveLimits turns maxSurge, rounded up, and maxUnavailable, rounded down, into numbers. When both come to
// zero nothing could ever move; as in Kubernetes' Deployments one Machine may then be unavailable.
func (s *settings) resolveLimits(from *clusterv1.MachineDeploymentRolloutStrategyRollingUpdate) []string {
	var found []string
	limit := func(name string, value *intstr.IntOrString, fallback intstr.IntOrString, up bool) int {
		number, err := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(value, fallback)), s.replicas, up)
		if err != nil || number < 0 {
			found = append(found, fmt.Sprintf(
				"spec.rollout.strategy.rollingUpdate.%s %q is neither a number nor a percentage: use one like 1 or 25%%", name, value.String()))
			return 0
		}
		return number
	}
	s.maxSurge = limit("maxSurge", from.MaxSurge, DefaultMaxSurge, true)
	s.maxUnavailable = min(limit("maxUnavailable", from.MaxUnavailable, DefaultMaxUnavailable, false), s.replicas)
	if s.strategy == clusterv1.OnDeleteMachineDeploymentStrategyType || s.recreate {
		s.maxSurge, s.maxUnavailable = 0, 0
	} else if s.maxSurge == 0 && s.maxUnavailable == 0 {
		s.maxUnavailable = 1
	}
	return found
}

// effectiveSelector is the selector; an empty one means the names of Cluster and deployment, which is
// admission's default.
func effectiveSelector(deployment *clusterv1.MachineDeployment) metav1.LabelSelector {
	selector := *deployment.Spec.Selector.DeepCopy()
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		selector.MatchLabels = identity(deployment)
	}
	return selector
}

// identity are the labels by which what belongs to a deployment is known.
func identity(deployment *clusterv1.MachineDeployment) map[string]string {
	return map[string]string{
		clusterv1.ClusterNameLabel:           deployment.Spec.ClusterName,
		clusterv1.MachineDeploymentNameLabel: deployment.Name,
	}
}
