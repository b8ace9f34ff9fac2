package chaos

import (
	"context"
	"slices"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rotate gives the core another kubeconfig and takes the old one back.
func (r *run) rotate(ctx context.Context) error {
	old := r.tokenName()
	r.token++
	r.coreTarget.Allow(r.tokenName())
	content, err := r.coreTarget.Kubeconfig(r.tokenName())
	if err != nil {
		return err
	}
	secret := r.kubeconfigSecret(content)
	if err := r.plane.direct.Update(ctx, secret); err != nil {
		return errors.Wrap(err, "rotating the kubeconfig")
	}
	r.coreTarget.Revoke(old)
	return nil
}

func (r *run) deleteNode(ctx context.Context, a action) (string, error) {
	list := &corev1.NodeList{}
	if err := r.plane.direct.List(ctx, list); err != nil {
		return "", errors.Wrap(err, "listing Nodes")
	}
	node, ok := pickOf(list.Items, a.pick)
	if !ok {
		return "none there", nil
	}
	r.deletedNodes[node.Name] = true
	return node.Name, client.IgnoreNotFound(r.plane.direct.Delete(ctx, &node))
}

// vanish lets an instance be gone as if somebody else had ended it. It is one that its Machine knows of: where the
// answer to its launch was lost and it is gone before anybody has asked, nothing is left that leads to its Node.
func (r *run) vanish(ctx context.Context, a action) (string, error) {
	machines := &clusterv1.MachineList{}
	if err := r.plane.direct.List(ctx, machines, client.InNamespace(r.namespace)); err != nil {
		return "", err
	}
	known := sets.New[string]()
	for i := range machines.Items {
		known.Insert(machines.Items[i].Spec.ProviderID)
	}
	running := slices.DeleteFunc(r.account.machines(), func(i machine) bool { return !i.running || !known.Has(i.providerID) })
	instance, ok := pickOf(running, a.pick)
	if !ok {
		return "none there", nil
	}
	r.vanished[instance.providerID] = instance.name
	r.kubelets.vanish(instance.providerID)
	return instance.id + " of " + instance.name, r.account.vanish(instance)
}

// fallSilent lets a Node become Unknown, as the node lifecycle controller does when its kubelet does not report. The health check finds
// that after silentFor, if the kubelet does not report again before.
func (r *run) fallSilent(ctx context.Context, a action) (string, error) {
	list := &corev1.NodeList{}
	if err := r.plane.direct.List(ctx, list); err != nil {
		return "", errors.Wrap(err, "listing Nodes")
	}
	node, ok := pickOf(list.Items, a.pick)
	if !ok {
		return "none there", nil
	}
	r.kubelets.fallSilent(node.UID)
	return node.Name, nil
}

// reportUnowned has the kubelets report of Machines that nobody replaces. The others stay silent, and so have to be replaced.
func (r *run) reportUnowned(ctx context.Context) error {
	machines, nodes := &clusterv1.MachineList{}, &corev1.NodeList{}
	if err := r.listAll(ctx, machines); err != nil {
		return err
	}
	if err := r.plane.direct.List(ctx, nodes); err != nil {
		return errors.Wrap(err, "listing Nodes")
	}
	unowned := sets.New[string]()
	for i := range machines.Items {
		if owner := metav1.GetControllerOf(&machines.Items[i]); owner == nil || owner.Kind != "MachineSet" {
			unowned.Insert(machines.Items[i].Name)
		}
	}
	for _, instance := range r.account.machines() {
		for _, node := range nodes.Items {
			if node.Spec.ProviderID == instance.providerID && unowned.Has(instance.name) {
				r.kubelets.reportAgain(node.UID)
			}
		}
	}
	return nil
}
