package health

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Facts is what is known of a Machine. Nothing in it is changed but the histories, by Observe.
type Facts struct {
	// Machine is the Machine.
	Machine *clusterv1.Machine
	// Cluster is its Cluster; nil when there is none.
	Cluster *clusterv1.Cluster
	// Node is the Node that status.nodeRef names; nil when there is none, which means something only if Unreadable is empty.
	Node *corev1.Node
	// Unreadable is why the Nodes cannot be read now; "" when they can. Nor are the conditions of the Machine about its Node judged by then.
	Unreadable string
	// Contested is why it is not known whose the Node is; "" when it is.
	Contested string
	// NotBefore is the moment before which nothing is judged by times and Nodes, because of a freeze or the grace after it.
	NotBefore time.Time
	// History and ClusterHistory are what this process has seen before; nil for nothing.
	History, ClusterHistory *History
	// Now is the time.
	Now time.Time
}

// clusterConditions are those of a Cluster without which nothing is judged, and from which on a Node is awaited.
var clusterConditions = []string{clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition}

// nodeConditions are those of a Machine about its Node.
var nodeConditions = []string{clusterv1.MachineNodeReadyCondition, clusterv1.MachineNodeHealthyCondition}

func condition(list []metav1.Condition, kind string) *metav1.Condition {
	return meta.FindStatusCondition(list, kind)
}

func nodeCondition(node *corev1.Node, kind string) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if string(node.Status.Conditions[i].Type) == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// controlPlane reports whether the Machine is one of a control plane.
func (f Facts) controlPlane() bool {
	_, labelled := f.Machine.Labels[clusterv1.MachineControlPlaneLabel]
	return labelled
}
