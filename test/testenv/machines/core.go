package machines

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/providers/driver"
)

// WithCore returns a client that does what a core does before it deletes a provider's machine: it deletes the Machine, and reports that its
// Node is drained. A provider keeps the instance until then.
func WithCore(c client.Client) client.Client { return coreClient{c} }

type coreClient struct{ client.Client }

// WithoutCore returns the client that WithCore was given, for deletions before which nobody deletes the Machine.
func WithoutCore(c client.Client) client.Client {
	if core, ok := c.(coreClient); ok {
		return core.Client
	}
	return c
}

// Delete deletes the Machine first.
func (c coreClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if _, ok := obj.(driver.Object); ok {
		if err := client.IgnoreNotFound(c.drain(ctx, obj)); err != nil {
			return err
		}
	}
	return c.Client.Delete(ctx, obj, opts...)
}

// drain deletes the Machine of a provider's machine, which stays as it has the finalizer of the core. The Machine takes over provider ID
// and addresses, and reports that its Node is drained.
func (c coreClient) drain(ctx context.Context, obj client.Object) error {
	found := obj.DeepCopyObject().(driver.Object)
	machine := &clusterv1.Machine{}
	key := client.ObjectKeyFromObject(obj)
	if err := c.Get(ctx, key, found); err != nil {
		return err
	}
	if err := c.Get(ctx, key, machine); err != nil {
		return err
	}
	before := machine.DeepCopy()
	controllerutil.AddFinalizer(machine, clusterv1.MachineFinalizer)
	machine.Spec.ProviderID = found.CommonSpec().ProviderID
	if err := c.Patch(ctx, machine, client.MergeFrom(before)); err != nil {
		return err
	}
	if err := c.Client.Delete(ctx, machine); err != nil {
		return err
	}
	before = machine.DeepCopy()
	machine.Status.Addresses = found.CommonStatus().Addresses
	meta.SetStatusCondition(&machine.Status.Conditions, metav1.Condition{
		Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue,
		Reason: clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason,
	})
	return c.Status().Patch(ctx, machine, client.MergeFrom(before))
}
