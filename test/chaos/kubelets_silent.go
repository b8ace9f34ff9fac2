package chaos

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// vanish is what happens to the Node of an instance that is gone without notice: nobody reports for it any more.
func (k *kubelets) vanish(providerID string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.vanished[providerID] = true
}

// fallSilent has the kubelet of a Node report no more.
func (k *kubelets) fallSilent(node types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silent.Insert(node)
}

// reportAgain has those kubelets report whose instances are there; all if none is named.
func (k *kubelets) reportAgain(nodes ...types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(nodes) == 0 {
		k.silent.Clear()
	}
	k.silent.Delete(nodes...)
}

// report writes what the node lifecycle controller says of those that do not report, and what those say that do again.
func (k *kubelets) report(ctx context.Context, joined map[string]*corev1.Node) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, node := range joined {
		status, reason := corev1.ConditionTrue, "Kubelet"
		if k.vanished[id] || k.silent.Has(node.UID) {
			status, reason = corev1.ConditionUnknown, "NodeStatusUnknown"
		}
		changed := node.DeepCopy()
		for i := range changed.Status.Conditions {
			c := &changed.Status.Conditions[i]
			if c.Type == corev1.NodeReady && c.Status != status {
				c.Status, c.Reason, c.LastTransitionTime = status, reason, metav1.Now()
				if err := k.cached.Status().Patch(ctx, changed, client.MergeFrom(node)); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
		}
	}
	return nil
}
