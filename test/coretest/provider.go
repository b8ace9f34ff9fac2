package coretest

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

// The instant providers look often while there is something to do, and each time later while there is not: each look is two requests.
const (
	minProviderPeriod = 20 * time.Millisecond
	maxProviderPeriod = 320 * time.Millisecond
)

// Instant simulates both providers in a namespace, or in all if it is "", until the context is done: bootstrap data are there at once, and
// a machine with its Ready Node as soon as there are bootstrap data. Nodes stay; the core has to delete them.
func Instant(ctx context.Context, c client.Client, namespace string, contract version.Contract) error {
	p := &instant{Client: c, namespace: namespace, contract: contract, done: map[string]bool{}}
	for period := minProviderPeriod; ; period = min(2*period, maxProviderPeriod) {
		if p.busy {
			period = minProviderPeriod
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(period):
		}
		p.busy = false
		for _, look := range []func(context.Context) error{p.bootstrap, p.infrastructure} {
			if err := look(ctx); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return err
			}
		}
	}
}

type instant struct {
	client.Client
	namespace string
	contract  version.Contract
	done      map[string]bool
	// busy is whether the last look has found something to do, or to wait for.
	busy bool
}

func (p *instant) list(ctx context.Context, role string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(groupKind(Kind(role, p.contract) + "List").WithVersion("v1"))
	err := p.List(ctx, list, client.InNamespace(p.namespace))
	return list.Items, err
}

func (p *instant) bootstrap(ctx context.Context) error {
	configs, err := p.list(ctx, Config)
	for i := range configs {
		config := &configs[i]
		if p.done["config/"+client.ObjectKeyFromObject(config).String()] || config.GetDeletionTimestamp() != nil {
			continue
		}
		p.busy = true
		before := config.DeepCopy()
		config.Object["status"] = BootstrapReady(p.contract, config.GetName())
		if err := p.Status().Patch(ctx, config, client.MergeFrom(before)); err != nil {
			return err
		}
		p.done["config/"+client.ObjectKeyFromObject(config).String()] = true
	}
	return err
}

func (p *instant) infrastructure(ctx context.Context) error {
	machines, err := p.list(ctx, Machine)
	for i := range machines {
		if p.done["machine/"+client.ObjectKeyFromObject(&machines[i]).String()] || machines[i].GetDeletionTimestamp() != nil {
			continue
		}
		p.busy = true
		if err := p.provision(ctx, &machines[i]); err != nil {
			return err
		}
	}
	return err
}

// provision creates one machine and its Node, the Node first.
func (p *instant) provision(ctx context.Context, infra *unstructured.Unstructured) error {
	machine := &clusterv1.Machine{}
	if err := p.Get(
		ctx,
		client.ObjectKeyFromObject(infra),
		machine,
	); err != nil ||
		ptr.Deref(machine.Spec.Bootstrap.DataSecretName, "") == "" {
		return client.IgnoreNotFound(err)
	}
	id := "stand-in:///" + infra.GetName()
	if err := p.join(ctx, infra.GetName(), id); err != nil {
		return err
	}
	before := infra.DeepCopy()
	infra.Object["spec"] = map[string]any{"providerID": id}
	if err := p.Patch(ctx, infra, client.MergeFrom(before)); err != nil {
		return err
	}
	before = infra.DeepCopy()
	infra.Object["status"] = Provisioned(p.contract)
	if err := p.Status().Patch(ctx, infra, client.MergeFrom(before)); err != nil {
		return err
	}
	p.done["machine/"+client.ObjectKeyFromObject(infra).String()] = true
	return nil
}

func (p *instant) join(ctx context.Context, name, id string) error {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{ProviderID: id, Taints: []corev1.Taint{clusterv1.NodeUninitializedTaint}},
	}
	err := p.Create(ctx, node)
	if apierrors.IsAlreadyExists(err) {
		err = p.Get(ctx, client.ObjectKeyFromObject(node), node)
	}
	if err != nil || len(node.Status.Conditions) > 0 {
		return err // One that another provider of a test has joined reports its own state.
	}
	before := node.DeepCopy()
	for conditionType, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
		corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
	} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: conditionType, Status: status})
	}
	return p.Status().Patch(ctx, node, client.MergeFrom(before))
}
