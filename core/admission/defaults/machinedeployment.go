package defaults

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Limits of a rolling update that sets none: one Machine more, none less.
const (
	MaxSurge       int32 = 1
	MaxUnavailable int32 = 0
)

// MachineDeployment sets the label with the name of the Cluster, replicas (see Replicas), the strategy with its
// limits, a selector for the names of Cluster and deployment, and the v of a version. Old is the deployment before the
// update, nil when it is being created.
//
// What is left open for want of a number or a name is as with MachineSet.
func MachineDeployment(deployment, old *clusterv1.MachineDeployment) {
	spec := &deployment.Spec
	setLabel(&deployment.Labels, clusterv1.ClusterNameLabel, spec.ClusterName)
	var before *int32
	if old != nil {
		before = old.Spec.Replicas
	}
	if replicas, err := Replicas(spec.Replicas, before, deployment.Annotations); err == nil {
		spec.Replicas = ptr.To(replicas)
	}
	strategy(&spec.Rollout.Strategy)
	empty := len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0
	if empty && deployment.Name != "" {
		setLabel(&spec.Selector.MatchLabels, clusterv1.MachineDeploymentNameLabel, deployment.Name)
		setLabel(&spec.Template.Labels, clusterv1.MachineDeploymentNameLabel, deployment.Name)
	}
	if !empty || deployment.Name != "" {
		setLabel(&spec.Selector.MatchLabels, clusterv1.ClusterNameLabel, spec.ClusterName)
	}
	setLabel(&spec.Template.Labels, clusterv1.ClusterNameLabel, spec.ClusterName)
	spec.Template.Spec.Version = Version(spec.Template.Spec.Version)
}

// strategy makes a rolling update of an empty strategy. Another strategy has no limits.
func strategy(strategy *clusterv1.MachineDeploymentRolloutStrategy) {
	if strategy.Type == "" {
		strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
	}
	if strategy.Type != clusterv1.RollingUpdateMachineDeploymentStrategyType {
		return
	}
	if strategy.RollingUpdate.MaxSurge == nil {
		strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(MaxSurge))
	}
	if strategy.RollingUpdate.MaxUnavailable == nil {
		strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(MaxUnavailable))
	}
}
