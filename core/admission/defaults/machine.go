package defaults

import (
	"strings"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// NodeDeletionTimeoutSeconds is how long the deletion of a Node is tried where a Machine sets no timeout.
const NodeDeletionTimeoutSeconds int32 = 10

// Machine sets the label with the name of the Cluster, the v of a version, and nodeDeletionTimeoutSeconds.
func Machine(machine *clusterv1.Machine) {
	setLabel(&machine.Labels, clusterv1.ClusterNameLabel, machine.Spec.ClusterName)
	machine.Spec.Version = Version(machine.Spec.Version)
	machine.Spec.Deletion.NodeDeletionTimeoutSeconds = NodeDeletionTimeout(machine.Spec.Deletion.NodeDeletionTimeoutSeconds)
}

// NodeDeletionTimeout is the timeout to use, in seconds: the given one, else NodeDeletionTimeoutSeconds. Zero, which
// means without end, stays.
func NodeDeletionTimeout(seconds *int32) *int32 {
	if seconds == nil {
		return ptr.To(NodeDeletionTimeoutSeconds)
	}
	return seconds
}

// Version puts a v before a Kubernetes version that lacks it. Empty stays empty.
func Version(version string) string {
	if version == "" || strings.HasPrefix(version, "v") {
		return version
	}
	return "v" + version
}

// setLabel sets one label, whatever it was.
func setLabel(labels *map[string]string, key, value string) {
	if *labels == nil {
		*labels = map[string]string{}
	}
	(*labels)[key] = value
}
