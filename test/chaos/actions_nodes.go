package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/remediation"
)

// rotate gives the core another kubeconfig and revokes the old one.
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

// vanish removes an instance as if another user had terminated it. It is one whose ID its Machine has: if the answer to
// its launch was lost and it is gone before the provider has read it, nothing leads to its Node.
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
	r.guard.excuse(instance.providerID)
	r.kubelets.vanish(instance.providerID)
	return instance.id + " of " + instance.name, r.account.vanish(instance)
}

// fallIll lets a Node become Unknown, as the node lifecycle controller does when its kubelet does not report, or sets a condition that
// says that it is broken. The health check or the default policy finds that after illFor, if it has not ended before. Every other time it
// chooses a Node whose Machine has replaced another one, if there is any: that is a retry.
func (r *run) fallIll(ctx context.Context, a action) (string, error) {
	nodes, machines := &corev1.NodeList{}, &clusterv1.MachineList{}
	if err := r.plane.direct.List(ctx, nodes); err != nil {
		return "", errors.Wrap(err, "listing Nodes")
	}
	if err := r.listAll(ctx, machines); err != nil {
		return "", err
	}
	replacements := sets.New[string]()
	for i := range machines.Items {
		if remediation.RecordOf(&machines.Items[i]) != nil {
			replacements.Insert(machines.Items[i].Spec.ProviderID)
		}
	}
	all := nodes.Items
	if a.amount < 0.5 {
		all = slices.DeleteFunc(slices.Clone(all), func(n corev1.Node) bool { return !replacements.Has(n.Spec.ProviderID) })
	}
	node, ok := pickOf(all, a.pick)
	if !ok {
		if node, ok = pickOf(nodes.Items, a.pick); !ok {
			return "none there", nil
		}
	}
	if a.act == fallSilent {
		r.kubelets.fallSilent(node.UID)
		return node.Name, nil
	}
	condition := nodeConditions[a.pick/7%uint64(len(nodeConditions))]
	r.kubelets.spoil(node.UID, condition)
	return node.Name + " " + string(condition), nil
}

// blackout lets six to nine of ten Nodes become Unknown: more than both limits above which nothing is replaced.
func (r *run) blackout(ctx context.Context, a action) (string, error) {
	nodes := &corev1.NodeList{}
	if err := r.plane.direct.List(ctx, nodes); err != nil {
		return "", errors.Wrap(err, "listing Nodes")
	}
	slices.SortFunc(nodes.Items, func(a, b corev1.Node) int { return cmp.Compare(a.UID, b.UID) })
	n := int(float64(len(nodes.Items))*(0.6+0.3*a.amount) + 0.5)
	uids := make([]types.UID, 0, n)
	for i := range nodes.Items[:n] {
		uids = append(uids, nodes.Items[i].UID)
	}
	r.kubelets.goDark(uids...)
	return fmt.Sprintf("%d of %d", n, len(nodes.Items)), nil
}

// healUnowned has the kubelets of Machines without a controller report again. The others stay unhealthy, and so have to be replaced.
func (r *run) healUnowned(ctx context.Context) error {
	r.kubelets.failNoMore()
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
		if !unowned.Has(instance.name) {
			continue
		}
		r.kubelets.joinAfterAll(instance.id)
		for _, node := range nodes.Items {
			if node.Spec.ProviderID == instance.providerID {
				r.kubelets.heal(node.UID)
			}
		}
	}
	return nil
}
