package naming

import (
	"maps"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	labelvalue "sigs.k8s.io/cluster-api/util/labels/format"
)

// GeneratedValue stands for the value of a label that is generated with an object. It is not a valid label value, so no selector
// that asks for a value matches it.
const GeneratedValue = "(generated)"

// MachineLabels returns the labels of the Machines of a set: those of the template, and over them the names of the Cluster, the set
// and its deployment. A name that is longer than a label value is hashed.
func MachineLabels(set *clusterv1.MachineSet) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, set.Spec.Template.Labels)
	labels[clusterv1.ClusterNameLabel] = set.Spec.ClusterName
	labels[clusterv1.MachineSetNameLabel] = GeneratedValue
	if set.Name != "" {
		labels[clusterv1.MachineSetNameLabel] = labelvalue.MustFormatValue(set.Name)
	}
	if deployment, ok := set.Labels[clusterv1.MachineDeploymentNameLabel]; ok {
		labels[clusterv1.MachineDeploymentNameLabel] = deployment
	}
	return labels
}

// SetLabels returns the labels of the MachineSets of a deployment, without the one that distinguishes the sets.
func SetLabels(deployment *clusterv1.MachineDeployment) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, deployment.Spec.Template.Labels)
	labels[clusterv1.ClusterNameLabel] = deployment.Spec.ClusterName
	labels[clusterv1.MachineDeploymentNameLabel] = GeneratedValue
	if deployment.Name != "" {
		labels[clusterv1.MachineDeploymentNameLabel] = deployment.Name
	}
	return labels
}

// DeploymentMachineLabels returns the labels of the Machines of a deployment. The names of its sets and the label that distinguishes
// them are generated.
func DeploymentMachineLabels(deployment *clusterv1.MachineDeployment) map[string]string {
	labels := SetLabels(deployment)
	labels[clusterv1.MachineSetNameLabel] = GeneratedValue
	labels[clusterv1.MachineDeploymentUniqueLabel] = GeneratedValue
	return labels
}
