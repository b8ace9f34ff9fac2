package standin

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// finalizer keeps an infrastructure machine until its stand-in has seen the deletion, as that of any
// real provider would.
const finalizer = Group + "/machine"

// machines is the stand-in infrastructure provider.
type machines struct {
	client client.Client
	nodes  *atomic.Int64
	// running are the machines that were provisioned, by UID.
	running sync.Map
}

func (m *machines) setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).Named("machines").
		For(metadata(Machine), builder.OnlyMetadata).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(toInfrastructure)).
		Complete(m)
}

// toInfrastructure enqueues the infrastructure machine of a Machine that has bootstrap data.
func toInfrastructure(_ context.Context, object client.Object) []reconcile.Request {
	machine, ok := object.(*clusterv1.Machine)
	if !ok || machine.Spec.Bootstrap.DataSecretName == nil || machine.Status.NodeRef.IsDefined() {
		return nil
	}
	name := types.NamespacedName{Namespace: machine.Namespace, Name: machine.Spec.InfrastructureRef.Name}
	return []reconcile.Request{{NamespacedName: name}}
}

// Reconcile provisions or deletes an infrastructure machine, within three requests.
func (m *machines) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	infra := metadata(Machine)
	if err := m.client.Get(ctx, request.NamespacedName, infra); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !infra.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, m.release(ctx, infra)
	}
	if _, running := m.running.Load(infra.UID); running {
		return ctrl.Result{}, nil
	}
	hasData, err := m.ownerHasData(ctx, infra)
	if err != nil || !hasData {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, m.provision(ctx, infra)
}

// release removes the finalizer of a deleted machine.
func (m *machines) release(ctx context.Context, infra *metav1.PartialObjectMetadata) error {
	m.running.Delete(infra.UID)
	if len(infra.Finalizers) == 0 {
		return nil
	}
	return client.IgnoreNotFound(patchObject(ctx, m.client, infra, map[string]any{
		"metadata": map[string]any{"finalizers": nil},
	}))
}

func (m *machines) ownerHasData(ctx context.Context, infra *metav1.PartialObjectMetadata) (bool, error) {
	for _, owner := range infra.OwnerReferences {
		if owner.Kind != "Machine" {
			continue
		}
		machine := &clusterv1.Machine{}
		err := m.client.Get(ctx, types.NamespacedName{Namespace: infra.Namespace, Name: owner.Name}, machine)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return machine.Spec.Bootstrap.DataSecretName != nil, errors.Wrapf(err, "reading the owner of %s", infra.Name)
	}
	return false, nil
}

// provision provisions a machine in the order of a real one: it has an ID when the cloud has
// accepted it, addresses when it runs, and then its kubelet joins.
func (m *machines) provision(ctx context.Context, infra *metav1.PartialObjectMetadata) error {
	err := patchObject(ctx, m.client, infra, map[string]any{
		"metadata": map[string]any{"finalizers": []string{finalizer}},
		"spec":     map[string]any{"providerID": providerID(infra)},
	})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	address := m.nodes.Add(1)
	err = patchStatus(ctx, m.client, infra, map[string]any{
		// Both versions of the contract.
		"ready":          true,
		"initialization": map[string]any{"provisioned": true},
		"addresses": []clusterv1.MachineAddress{
			{Type: clusterv1.MachineHostName, Address: infra.Name},
			{Type: clusterv1.MachineInternalIP, Address: internalIP(address)},
		},
		"conditions": []metav1.Condition{ready("Provisioned")},
	})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := m.client.Create(ctx, node(infra, internalIP(address))); err != nil && !apierrors.IsAlreadyExists(err) {
		return errors.Wrapf(err, "creating Node %s", infra.Name)
	}
	m.running.Store(infra.UID, true)
	return nil
}

func providerID(infra *metav1.PartialObjectMetadata) string {
	return "instant:///" + infra.Namespace + "/" + infra.Name
}
