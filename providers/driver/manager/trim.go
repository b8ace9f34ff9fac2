package manager

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// trimMachine keeps the fields of a Machine that a launch, or the end of a deletion, depends on.
func trimMachine(obj any) (any, error) {
	m, ok := obj.(*clusterv1.Machine)
	if !ok {
		return obj, nil // A tombstone.
	}
	return &clusterv1.Machine{
		TypeMeta:   m.TypeMeta,
		ObjectMeta: withController(trimMeta(m.ObjectMeta), m),
		Spec: clusterv1.MachineSpec{
			ClusterName:       m.Spec.ClusterName,
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: m.Spec.Bootstrap.DataSecretName},
			InfrastructureRef: m.Spec.InfrastructureRef,
			FailureDomain:     m.Spec.FailureDomain,
			ProviderID:        m.Spec.ProviderID,
		},
		// An object that goes waits until its Machine has addresses.
		Status: clusterv1.MachineStatus{Addresses: m.Status.Addresses, Conditions: trimDeleting(m)},
	}, nil
}

// trimDeleting keeps the reason of the condition Deleting: an instance stays until its Machine has been drained.
func trimDeleting(m *clusterv1.Machine) []metav1.Condition {
	deleting := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineDeletingCondition)
	if m.DeletionTimestamp.IsZero() || deleting == nil {
		return nil
	}
	return []metav1.Condition{{Type: deleting.Type, Status: deleting.Status, Reason: deleting.Reason}}
}

// trimCluster keeps the fields of a Cluster by which machines may be launched in it.
func trimCluster(obj any) (any, error) {
	c, ok := obj.(*clusterv1.Cluster)
	if !ok {
		return obj, nil // A tombstone.
	}
	return &clusterv1.Cluster{
		TypeMeta:   c.TypeMeta,
		ObjectMeta: trimMeta(c.ObjectMeta),
		Spec:       clusterv1.ClusterSpec{Paused: c.Spec.Paused},
		Status: clusterv1.ClusterStatus{Initialization: clusterv1.ClusterInitializationStatus{
			InfrastructureProvisioned: c.Status.Initialization.InfrastructureProvisioned,
		}},
	}, nil
}

// trimNamespace keeps the labels, by which identities allow namespaces.
func trimNamespace(obj any) (any, error) {
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return obj, nil // A tombstone.
	}
	trimmed := &corev1.Namespace{TypeMeta: ns.TypeMeta, ObjectMeta: trimMeta(ns.ObjectMeta)}
	trimmed.Labels = ns.Labels
	return trimmed, nil
}

// withController keeps which object controls a Machine: what has the same controller is one set.
func withController(meta metav1.ObjectMeta, m *clusterv1.Machine) metav1.ObjectMeta {
	if ref := metav1.GetControllerOf(m); ref != nil {
		meta.OwnerReferences = []metav1.OwnerReference{*ref}
	}
	return meta
}

// trimMeta keeps what identifies an object, and whether it is being deleted.
func trimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              m.Name,
		Namespace:         m.Namespace,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp,
	}
}
