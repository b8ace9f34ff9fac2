package chaos

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeConditions are those that node-problem-detector and kubelets set, and that the default policy of the core and the health check go by.
var nodeConditions = []corev1.NodeConditionType{
	"KernelDeadlock", "ReadonlyFilesystem", corev1.NodeDiskPressure, corev1.NodeNetworkUnavailable,
}

// illness is what is wrong with kubelets and their Nodes. It is used under the mutex of kubelets.
type illness struct {
	// vanished are the provider IDs of instances that are gone without notice.
	vanished sets.Set[string]
	// silent are the Nodes whose kubelets do not report; dark those that do not since many fell silent at once.
	silent, dark sets.Set[types.UID]
	// bad has the condition that is True of a Node.
	bad map[types.UID]corev1.NodeConditionType
	// failing is how many of the next machines never become Nodes; lame are the IDs of the instances that do not.
	failing int
	lame    sets.Set[string]
}

func newIllness() illness {
	return illness{
		vanished: sets.New[string](), silent: sets.New[types.UID](), dark: sets.New[types.UID](),
		bad: map[types.UID]corev1.NodeConditionType{}, lame: sets.New[string](),
	}
}

// vanish is what happens to the Node of an instance that is gone without notice: no kubelet reports for it any more.
func (k *kubelets) vanish(providerID string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ill.vanished.Insert(providerID)
}

// fallSilent has the kubelet of a Node stop reporting.
func (k *kubelets) fallSilent(node types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ill.silent.Insert(node)
}

// goDark has the kubelets of these Nodes stop reporting, and those of all other dark Nodes report again.
func (k *kubelets) goDark(nodes ...types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ill.dark = sets.New(nodes...)
}

// spoil sets a condition of a Node that reports a defect.
func (k *kubelets) spoil(node types.UID, condition corev1.NodeConditionType) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ill.bad[node] = condition
}

// failNext lets one more of the next machines never become a Node.
func (k *kubelets) failNext() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ill.failing++
}

// failNoMore ends that for later machines.
func (k *kubelets) failNoMore() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ill.failing = 0
}

// fails reports whether the machine, which is there now, never becomes a Node.
func (k *kubelets) fails(instance string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ill.failing > 0 {
		k.ill.failing--
		k.ill.lame.Insert(instance)
	}
	return k.ill.lame.Has(instance)
}

// joinAfterAll lets machines that would never have become Nodes become Nodes.
func (k *kubelets) joinAfterAll(instances ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ill.lame.Delete(instances...)
}

// heal has those kubelets whose instances are there report a healthy Node; all if none is named.
func (k *kubelets) heal(nodes ...types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(nodes) == 0 {
		k.ill.silent.Clear()
		clear(k.ill.bad)
	}
	k.ill.silent.Delete(nodes...)
	for _, node := range nodes {
		delete(k.ill.bad, node)
	}
}

// report writes the conditions that the node lifecycle controller sets for silent kubelets, and those that the others set.
func (k *kubelets) report(ctx context.Context, joined map[string]*corev1.Node) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, node := range joined {
		changed := node.DeepCopy()
		if !k.ill.apply(id, changed) {
			continue
		}
		if err := k.cached.Status().Patch(ctx, changed, client.MergeFrom(node)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// apply writes the conditions of a Node, and reports whether one has changed.
func (i *illness) apply(providerID string, node *corev1.Node) bool {
	ready, reason := corev1.ConditionTrue, "Kubelet"
	if i.vanished.Has(providerID) || i.silent.Has(node.UID) || i.dark.Has(node.UID) {
		ready, reason = corev1.ConditionUnknown, "NodeStatusUnknown"
	}
	changed := setCondition(node, corev1.NodeReady, ready, reason)
	for _, kind := range nodeConditions {
		switch {
		case i.bad[node.UID] == kind:
			changed = setCondition(node, kind, corev1.ConditionTrue, "Detected") || changed
		case slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind }):
			changed = setCondition(node, kind, corev1.ConditionFalse, "NotDetected") || changed
		}
	}
	return changed
}

// setCondition reports whether the status of the condition was another one.
func setCondition(node *corev1.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) bool {
	now := metav1.Now()
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type != kind {
			continue
		}
		if c.Status == status {
			return false
		}
		c.Status, c.Reason, c.LastTransitionTime = status, reason, now
		return true
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now,
	})
	return true
}
