package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineTemplateStatus is what a provider's machine template kind reports about the Nodes of its machines. The cluster
// autoscaler reads capacity and nodeInfo to scale a node group from zero; see the contract of Cluster API for
// infrastructure machine templates,
// https://cluster-api.sigs.k8s.io/developer/providers/contracts/infra-machine.
type MachineTemplateStatus struct {
	// conditions are CapacityKnown.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// capacity is what Pods can use of a Node of such a machine, for the cluster autoscaler: cpu, memory, and where it is known
	// ephemeral-storage and GPUs. Memory and ephemeral-storage are estimates. Annotations on a MachineDeployment override them;
	// the core writes these from the first Node on.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo describes what such a Node runs on.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`
}

// NodeInfo describes what the Nodes of a template's machines run on.
// +kubebuilder:validation:MinProperties=1
type NodeInfo struct {
	// architecture of the CPU, as in the Node's label kubernetes.io/arch.
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64;s390x;ppc64le
	Architecture string `json:"architecture,omitempty"`

	// operatingSystem, as in the Node's label kubernetes.io/os.
	// +optional
	// +kubebuilder:validation:Enum=linux;windows
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// Condition of a provider's machine template kind.
const (
	// CapacityKnownCondition is True once the status has the capacity. Until then its message explains why not, and what a
	// person can do. Machines are created from the template either way.
	CapacityKnownCondition = "CapacityKnown"
	// CapacityKnownReason means that the cloud has reported it. While it is not known, the reason is Unauthorized,
	// Throttled, UnresolvedReference, InvalidConfiguration or CloudError.
	CapacityKnownReason = "CapacityKnown"
)
