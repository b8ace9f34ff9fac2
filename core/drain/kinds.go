package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// attachment is what is kept of a VolumeAttachment.
type attachment struct {
	name, node string
	uid        types.UID
	// volume is the name of the PersistentVolume; empty for one that a pod has inline.
	volume   string
	attached bool
	created  time.Time
	// ending is when it was deleted, which has the volume detached; zero when it was not.
	ending time.Time
}

// persistentVolume is what is kept of a PersistentVolume.
type persistentVolume struct {
	name string
	// claim is namespace/name of the PersistentVolumeClaim that it is bound to; empty when it is not.
	claim string
	// onNode is how status.volumesAttached of a Node calls it; empty for what is not a CSI volume.
	onNode string
}

// budget is what is kept of a PodDisruptionBudget.
type budget struct {
	key      types.NamespacedName
	selector labels.Selector
	// allowed is how many evictions it allows now.
	allowed int32
	// healthy and expected count the pods that it is about, disrupted those whose eviction was granted and that are still there.
	healthy, expected, disrupted int32
	// current means that its controller has observed its present spec.
	current bool
}

func newAttachments(t *target) *collection[attachment] {
	return &collection[attachment]{
		what: "VolumeAttachments", example: &storagev1.VolumeAttachment{},
		source: func(report func(error)) *cache.ListWatch {
			return listWatch(t.storage.VolumeAttachments().List, t.storage.VolumeAttachments().Watch, report)
		},
		trim: func(obj any) (attachment, string, []string) {
			va, ok := obj.(*storagev1.VolumeAttachment)
			if !ok {
				return attachment{}, "", nil
			}
			kept := attachment{
				name: va.Name, node: va.Spec.NodeName, uid: va.UID, volume: ptr.Deref(va.Spec.Source.PersistentVolumeName, ""),
				attached: va.Status.Attached, created: va.CreationTimestamp.Time, ending: ptr.Deref(va.DeletionTimestamp, metav1.Time{}).Time,
			}
			return kept, va.Name, []string{ofNode(kept.node), ofVolume(kept.volume)}
		},
		affects: (*nodeDrain).attachmentChanged,
	}
}

func ofNode(name string) string   { return "node/" + name }
func ofVolume(name string) string { return "volume/" + name }
func ofClaim(name string) string  { return "claim/" + name }

func newVolumes(t *target) *collection[persistentVolume] {
	return &collection[persistentVolume]{
		what: "PersistentVolumes", example: &corev1.PersistentVolume{},
		source: func(report func(error)) *cache.ListWatch {
			return listWatch(t.core.PersistentVolumes().List, t.core.PersistentVolumes().Watch, report)
		},
		trim: func(obj any) (persistentVolume, string, []string) {
			pv, ok := obj.(*corev1.PersistentVolume)
			if !ok {
				return persistentVolume{}, "", nil
			}
			kept := persistentVolume{name: pv.Name}
			var index []string
			if ref := pv.Spec.ClaimRef; ref != nil && (ref.Kind == "" || ref.Kind == "PersistentVolumeClaim") {
				kept.claim = ref.Namespace + "/" + ref.Name
				index = append(index, ofClaim(kept.claim))
			}
			if csi := pv.Spec.CSI; csi != nil {
				kept.onNode = "kubernetes.io/csi/" + csi.Driver + "^" + csi.VolumeHandle
				index = append(index, kept.onNode)
			}
			return kept, pv.Name, index
		},
		affects: (*nodeDrain).volumeChanged,
	}
}

func newBudgets(t *target) *collection[budget] {
	return &collection[budget]{
		what: "PodDisruptionBudgets", example: &policyv1.PodDisruptionBudget{},
		source: func(report func(error)) *cache.ListWatch {
			budgets := t.policy.PodDisruptionBudgets(metav1.NamespaceAll)
			return listWatch(budgets.List, budgets.Watch, report)
		},
		trim: func(obj any) (budget, string, []string) {
			pdb, ok := obj.(*policyv1.PodDisruptionBudget)
			if !ok {
				return budget{}, "", nil
			}
			kept := trimBudget(pdb)
			return kept, kept.key.String(), []string{kept.key.Namespace}
		},
		affects: (*nodeDrain).budgetChanged,
	}
}

// trimBudget keeps what is used.
func trimBudget(pdb *policyv1.PodDisruptionBudget) budget {
	kept := budget{
		key:     types.NamespacedName{Namespace: pdb.Namespace, Name: pdb.Name},
		allowed: pdb.Status.DisruptionsAllowed, healthy: pdb.Status.CurrentHealthy, expected: pdb.Status.ExpectedPods,
		disrupted: int32(len(pdb.Status.DisruptedPods)), current: pdb.Status.ObservedGeneration == pdb.Generation,
	}
	var err error
	if kept.selector, err = metav1.LabelSelectorAsSelector(pdb.Spec.Selector); err != nil {
		kept.selector = labels.Nothing()
	}
	return kept
}

func newNamespaces(t *target) *collection[labels.Set] {
	return &collection[labels.Set]{
		what: "Namespaces", example: &metav1.PartialObjectMetadata{},
		source: func(report func(error)) *cache.ListWatch {
			namespaces := t.meta.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
			return listWatch(namespaces.List, namespaces.Watch, report)
		},
		trim: func(obj any) (labels.Set, string, []string) {
			namespace, ok := obj.(*metav1.PartialObjectMetadata)
			if !ok {
				return nil, "", nil
			}
			return namespace.Labels, namespace.Name, nil
		},
		affects: (*nodeDrain).namespaceChanged,
	}
}
