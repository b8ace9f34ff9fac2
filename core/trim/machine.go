package trim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Machine trims a Machine in place: most of its texts are those of its siblings, or its own name.
func Machine(m *clusterv1.Machine) {
	m.ManagedFields = nil
	share(&m.Namespace, &m.GenerateName, &m.Kind, &m.APIVersion)
	m.Labels, m.Annotations = Map(m.Labels), Map(m.Annotations)
	for i := range m.OwnerReferences {
		owner := &m.OwnerReferences[i]
		share(&owner.APIVersion, &owner.Kind, &owner.Name, (*string)(&owner.UID))
	}
	for i := range m.Finalizers {
		share(&m.Finalizers[i])
	}
	share(&m.Spec.ClusterName, &m.Spec.Version, &m.Spec.FailureDomain, &m.Status.FailureDomain, &m.Status.Phase)
	for _, ref := range []*clusterv1.ContractVersionedObjectReference{&m.Spec.Bootstrap.ConfigRef, &m.Spec.InfrastructureRef} {
		share(&ref.APIGroup, &ref.Kind)
		sameAs(m.Name, &ref.Name)
	}
	sameAs(m.Name, &m.Status.NodeRef.Name)
	if m.Spec.Bootstrap.DataSecretName != nil {
		sameAs(m.Name, m.Spec.Bootstrap.DataSecretName)
	}
	m.Status.Conditions = conditions(m.Status.Conditions)
	older(m.Status.Deprecated)
	nodeInfo(m.Status.NodeInfo)
}

// older trims what is kept for clients of v1beta1.
//
//nolint:staticcheck // as long as upstream converts for them
func older(status *clusterv1.MachineDeprecatedStatus) {
	if status == nil || status.V1Beta1 == nil {
		return
	}
	list := append(make(clusterv1.Conditions, 0, len(status.V1Beta1.Conditions)), status.V1Beta1.Conditions...)
	for i := range list {
		share((*string)(&list[i].Type), (*string)(&list[i].Status), (*string)(&list[i].Severity), &list[i].Reason)
	}
	if len(list) > 0 {
		status.V1Beta1.Conditions = list
	}
}

// Node trims the part of a Node that is cached, in place.
func Node(n *corev1.Node) {
	n.Labels, n.Annotations = Map(n.Labels), Map(n.Annotations)
	share(&n.Kind, &n.APIVersion)
	for i := range n.Status.Conditions {
		condition := &n.Status.Conditions[i]
		share((*string)(&condition.Type), (*string)(&condition.Status), &condition.Reason, &condition.Message)
	}
	nodeInfo(&n.Status.NodeInfo)
}

// sameAs lets a text that equals a name be that name.
func sameAs(name string, text *string) {
	if *text == name {
		*text = name
	}
}

// conditions are the same conditions, without the room that decoding left behind them.
func conditions(list []metav1.Condition) []metav1.Condition {
	if len(list) == 0 {
		return nil
	}
	list = append(make([]metav1.Condition, 0, len(list)), list...)
	for i := range list {
		share(&list[i].Type, (*string)(&list[i].Status), &list[i].Reason)
	}
	return list
}

// nodeInfo shares what Nodes of one image have in common.
func nodeInfo(info *corev1.NodeSystemInfo) {
	if info == nil {
		return
	}
	share(&info.KernelVersion, &info.OSImage, &info.ContainerRuntimeVersion, &info.KubeletVersion,
		&info.KubeProxyVersion, &info.OperatingSystem, &info.Architecture) //nolint:staticcheck // deprecated fields take room as well
}
