package drain

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

type (
	attachment       = *storagev1.VolumeAttachment
	persistentVolume = *corev1.PersistentVolume
	budget           = *policyv1.PodDisruptionBudget
	metadataOnly     = *metav1.PartialObjectMetadata
)

func ofNode(name string) string   { return "node/" + name }
func ofVolume(name string) string { return "volume/" + name }

// volumeOf is the name of the PersistentVolume that is attached; empty for one that a pod has inline.
func volumeOf(a attachment) string { return ptr.Deref(a.Spec.Source.PersistentVolumeName, "") }

func newAttachments(t *target) *collection[attachment] {
	return newCollection("VolumeAttachments", &storagev1.VolumeAttachment{},
		func(report func(error)) *cache.ListWatch {
			return listWatch(t.storage.VolumeAttachments().List, t.storage.VolumeAttachments().Watch, report)
		},
		func(a attachment) []string { return []string{ofNode(a.Spec.NodeName), ofVolume(volumeOf(a))} },
		func(n *nodeDrain, before, after attachment) bool {
			for _, a := range []attachment{before, after} {
				if a == nil {
					continue
				}
				if _, underWay := n.handovers[volumeOf(a)]; underWay || a.Spec.NodeName == n.node {
					return true
				}
			}
			return false
		})
}

// claimOf is namespace/name of the PersistentVolumeClaim that a PersistentVolume is bound to; empty when it is not bound.
func claimOf(pv persistentVolume) string {
	if ref := pv.Spec.ClaimRef; ref != nil && (ref.Kind == "" || ref.Kind == "PersistentVolumeClaim") {
		return ref.Namespace + "/" + ref.Name
	}
	return ""
}

func newVolumes(t *target) *collection[persistentVolume] {
	return newCollection("PersistentVolumes", &corev1.PersistentVolume{},
		func(report func(error)) *cache.ListWatch {
			return listWatch(t.core.PersistentVolumes().List, t.core.PersistentVolumes().Watch, report)
		},
		func(pv persistentVolume) []string {
			if csi := pv.Spec.CSI; csi != nil {
				// status.volumesAttached of a Node calls it so.
				return []string{"kubernetes.io/csi/" + csi.Driver + "^" + csi.VolumeHandle}
			}
			return nil
		},
		func(n *nodeDrain, before, after persistentVolume) bool {
			return (before == nil || after == nil || claimOf(before) != claimOf(after)) && len(n.reported.Volumes)+len(n.handovers) > 0
		})
}

func newBudgets(t *target) *collection[budget] {
	return newCollection("PodDisruptionBudgets", &policyv1.PodDisruptionBudget{},
		func(report func(error)) *cache.ListWatch {
			budgets := t.policy.PodDisruptionBudgets(metav1.NamespaceAll)
			return listWatch(budgets.List, budgets.Watch, report)
		},
		func(b budget) []string { return []string{b.Namespace} },
		(*nodeDrain).budgetChanged)
}

// newMetadata reads only the metadata of a kind, and has drains continue when labels change.
func newMetadata(t *target, what string, resource schema.GroupVersionResource) *collection[metadataOnly] {
	return newCollection(what, &metav1.PartialObjectMetadata{},
		func(report func(error)) *cache.ListWatch {
			return listWatch(t.meta.Resource(resource).List, t.meta.Resource(resource).Watch, report)
		},
		func(m metadataOnly) []string { return []string{string(m.UID)} },
		func(_ *nodeDrain, before, after metadataOnly) bool {
			return before == nil || after == nil || !labels.Equals(before.Labels, after.Labels)
		})
}

func newNamespaces(t *target) *collection[metadataOnly] {
	return newMetadata(t, "Namespaces", corev1.SchemeGroupVersion.WithResource("namespaces"))
}

func newDaemonSets(t *target) *collection[metadataOnly] {
	return newMetadata(t, "DaemonSets", appsv1.SchemeGroupVersion.WithResource("daemonsets"))
}
