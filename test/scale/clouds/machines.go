package clouds

import (
	"context"
	"sync"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/inframachine"
	"millwright.dev/contracts/version"
)

// hands is how many objects the harness works on at a time.
const hands = 8

// forEach does something for each Machine, some at a time, and returns what went wrong.
func forEach(n int, do func(name string) error) error {
	names := make(chan string)
	failures := make([]error, hands)
	var group sync.WaitGroup
	for i := range hands {
		group.Go(func() {
			for name := range names {
				if err := do(name); err != nil {
					failures[i] = err
				}
			}
		})
	}
	for i := range n {
		names <- machineName(i)
	}
	close(names)
	group.Wait()
	return kerrors.NewAggregate(failures)
}

// create creates a Machine with its bootstrap data and its infrastructure machine, which it owns from the start.
func (w *world) create(ctx context.Context, name string) error {
	if err := w.client.Create(ctx, bootstrapSecret(name)); err != nil {
		return errors.Wrap(err, "creating bootstrap data")
	}
	owner := machine(w.provider, name)
	if err := w.client.Create(ctx, owner); err != nil {
		return errors.Wrap(err, "creating a Machine")
	}
	infra := w.provider.machine(name)
	infra.SetLabels(owner.Labels)
	infra.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine"))})
	infra.Object["spec"] = w.provider.Spec()
	return errors.Wrap(w.client.Create(ctx, infra), "creating an infrastructure machine")
}

// list reads all infrastructure machines by name.
func (w *world) list(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(w.provider.Machine)
	if err := w.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, errors.Wrap(err, "listing infrastructure machines")
	}
	found := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		found[list.Items[i].GetName()] = &list.Items[i]
	}
	return found, nil
}

// running reports whether the instance of an infrastructure machine runs: both providers report it in the older field of the contract.
func running(infra *unstructured.Unstructured) bool {
	ready, _, _ := unstructured.NestedBool(infra.Object, "status", "ready")
	id, _, _ := unstructured.NestedString(infra.Object, "spec", "providerID")
	return ready && id != ""
}

// adopt writes what a core writes of a Machine whose instance runs and whose Node has joined: one write of the object, one of its status.
func (w *world) adopt(ctx context.Context, infra *unstructured.Unstructured) error {
	m := &clusterv1.Machine{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: infra.GetName()}, m); err != nil {
		return errors.Wrap(err, "reading a Machine")
	}
	base := m.DeepCopy()
	m.Spec.ProviderID, _, _ = unstructured.NestedString(infra.Object, "spec", "providerID")
	if err := w.client.Patch(ctx, m, client.MergeFrom(base)); err != nil {
		return errors.Wrap(err, "writing the provider ID of a Machine")
	}
	addresses, err := inframachine.At(version.V1Beta2).Addresses(infra)
	if err != nil {
		return errors.Wrap(err, "reading the addresses of an infrastructure machine")
	}
	base = m.DeepCopy()
	m.Status.Addresses = addresses
	m.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true)
	m.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	m.Status.NodeRef.Name = m.Name
	m.Status.Phase = string(clusterv1.MachinePhaseRunning)
	return errors.Wrap(w.client.Status().Patch(ctx, m, client.MergeFrom(base)), "writing the status of a Machine")
}

// remove deletes a Machine, which waits, and its infrastructure machine.
func (w *world) remove(ctx context.Context, name string) error {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := w.client.Delete(ctx, m); err != nil {
		return errors.Wrap(err, "deleting a Machine")
	}
	return errors.Wrap(w.client.Delete(ctx, w.provider.machine(name)), "deleting an infrastructure machine")
}

// release removes the finalizer of a Machine whose infrastructure machine is gone.
func (w *world) release(ctx context.Context, name string) error {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{finalizer}}}
	base := m.DeepCopy()
	m.Finalizers = nil
	return errors.Wrap(w.client.Patch(ctx, m, client.MergeFrom(base)), "releasing a Machine")
}
