package defaults

import (
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineHealthCheck sets the label with the name of the Cluster, and how long a Node may take to appear.
func MachineHealthCheck(check *clusterv1.MachineHealthCheck) {
	setLabel(&check.Labels, clusterv1.ClusterNameLabel, check.Spec.ClusterName)
	if check.Spec.Checks.NodeStartupTimeoutSeconds == nil {
		// A copy: the variable is shared by everyone who imports the API.
		check.Spec.Checks.NodeStartupTimeoutSeconds = ptr.To(clusterv1.DefaultNodeStartupTimeoutSeconds)
	}
}
