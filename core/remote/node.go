package remote

import (
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"millwright.dev/core/trim"
)

// byProviderID is the index of the Node cache over spec.providerID.
const byProviderID = "spec.providerID"

// indexers are the indexes of the Node cache.
var indexers = cache.Indexers{
	byProviderID: func(obj any) ([]string, error) {
		node, ok := obj.(*corev1.Node)
		if !ok || node.Spec.ProviderID == "" {
			return nil, nil
		}
		return []string{node.Spec.ProviderID}, nil
	},
}

// allocatable are the resources of a Node that are cached: those that the cluster autoscaler is told.
var allocatable = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods,
}

// trimNode is the transform of the Node cache: it keeps the fields that the core reads and drops the others.
// The result must not be written back as a whole, only as a patch.
func trimNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	kept := &corev1.Node{
		TypeMeta: node.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:              node.Name,
			UID:               node.UID,
			ResourceVersion:   node.ResourceVersion,
			CreationTimestamp: node.CreationTimestamp,
			DeletionTimestamp: node.DeletionTimestamp,
			Finalizers:        node.Finalizers,
			Labels:            node.Labels,
			Annotations:       node.Annotations,
		},
		Spec: corev1.NodeSpec{
			ProviderID:    node.Spec.ProviderID,
			Taints:        node.Spec.Taints,
			Unschedulable: node.Spec.Unschedulable,
		},
		Status: corev1.NodeStatus{
			Conditions:      make([]corev1.NodeCondition, 0, len(node.Status.Conditions)),
			NodeInfo:        node.Status.NodeInfo,
			VolumesAttached: node.Status.VolumesAttached,
		},
	}
	for _, name := range allocatable {
		if quantity, ok := node.Status.Allocatable[name]; ok {
			if kept.Status.Allocatable == nil {
				kept.Status.Allocatable = make(corev1.ResourceList, len(allocatable))
			}
			kept.Status.Allocatable[name] = quantity
		}
	}
	for _, condition := range node.Status.Conditions {
		condition.LastHeartbeatTime = metav1.Time{}
		kept.Status.Conditions = append(kept.Status.Conditions, condition)
	}
	trim.Node(kept)
	return kept, nil
}

// changed reports whether two versions of a cached Node differ in anything but their resource version.
func changed(before, after *corev1.Node) bool {
	if before.ResourceVersion == after.ResourceVersion {
		return false
	}
	a, b := *before, *after
	a.ResourceVersion, b.ResourceVersion = "", ""
	return !equality.Semantic.DeepEqual(&a, &b)
}

// nodes is the Node cache of one connection.
type nodes struct {
	informer cache.SharedIndexInformer
	// reading knows whether the API server lets Nodes be read.
	reading *reading
}

// get returns the cached Node of that name, nil when there is none.
func (n nodes) get(name string) (*corev1.Node, error) {
	obj, found, err := n.informer.GetIndexer().GetByKey(name)
	if err != nil || !found {
		return nil, errors.Wrapf(err, "reading Node %s from the cache", name)
	}
	return obj.(*corev1.Node), nil
}

// all returns all cached Nodes.
func (n nodes) all() []*corev1.Node {
	objects := n.informer.GetIndexer().List()
	list := make([]*corev1.Node, 0, len(objects))
	for _, obj := range objects {
		if node, ok := obj.(*corev1.Node); ok {
			list = append(list, node)
		}
	}
	return list
}

// withProviderID returns the cached Nodes of that provider ID.
func (n nodes) withProviderID(id string) ([]*corev1.Node, error) {
	objects, err := n.informer.GetIndexer().ByIndex(byProviderID, id)
	if err != nil {
		return nil, errors.Wrapf(err, "reading Nodes with provider ID %s from the cache", id)
	}
	list := make([]*corev1.Node, 0, len(objects))
	for _, obj := range objects {
		list = append(list, obj.(*corev1.Node))
	}
	return list, nil
}

// nodeHandler passes changes of Nodes on.
func nodeHandler(notify func(node *corev1.Node, gone bool)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if node, ok := obj.(*corev1.Node); ok {
				notify(node, false)
			}
		},
		UpdateFunc: func(before, after any) {
			a, ok := before.(*corev1.Node)
			b, ok2 := after.(*corev1.Node)
			if ok && ok2 && changed(a, b) {
				notify(b, false)
			}
		},
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if node, ok := obj.(*corev1.Node); ok {
				notify(node, true)
			}
		},
	}
}
