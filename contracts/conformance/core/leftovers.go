package core

import (
	"context"
	stderrors "errors"

	"github.com/pkg/errors"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/behaviour"
)

// leftovers removes what killed runs have left: their objects, their admission policies, and the kinds of the suite.
func leftovers(ctx context.Context, env *Env) error {
	ctx, cancel := context.WithTimeout(ctx, env.Timeouts.Cleanup.Duration)
	defer cancel()
	if err := policies(ctx, env); err != nil {
		return err
	}
	_, dead, err := others(ctx, env)
	if err != nil {
		return err
	}
	for i := range dead {
		if err := removeRun(ctx, env, &dead[i]); err != nil {
			// The user may have no rights in its namespace. This run can continue; the Lease shows the next one what is left.
			env.logf("what a killed run has left in namespace %s is not removed: %v", dead[i].Namespace, err)
		}
	}
	c := &cleanup{env: env}
	return c.until(ctx, func() (bool, error) { return true, kinds(ctx, env) })
}

// removeRun removes the objects of a dead run, its namespace if the run created it, and last its Lease.
func removeRun(ctx context.Context, env *Env, lease *coordinationv1.Lease) error {
	of := *env
	of.Run, of.Namespace = lease.Labels[behaviour.LabelRun], lease.Namespace
	c := &cleanup{env: &of}
	if err := c.objects(ctx); err != nil {
		return err
	}
	namespace := &corev1.Namespace{}
	if namespace.Name = namespaceOf(of.Run); namespace.Name == lease.Namespace {
		if err := c.delete(ctx, namespace); err != nil {
			return err
		}
	}
	return c.delete(ctx, lease)
}

// policies removes the admission policies of dead runs: they are cluster-wide, and are not deleted with the namespace of the run.
func policies(ctx context.Context, env *Env) error {
	var found []client.Object
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}, &admissionregistrationv1.ValidatingAdmissionPolicyList{},
	} {
		if err := env.Client.List(ctx, list, client.HasLabels{behaviour.LabelRun}); err != nil {
			return errors.Wrap(err, "looking for admission policies of earlier runs")
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if object, is := item.(client.Object); is {
				found = append(found, object)
			}
			return nil
		})
	}
	alive, _, err := others(ctx, env)
	if err != nil {
		return err
	}
	for _, object := range found {
		if run := object.GetLabels()[behaviour.LabelRun]; run == env.Run || alive[run] {
			continue
		}
		if err := client.IgnoreNotFound(env.Client.Delete(ctx, object)); err != nil {
			return errors.Wrap(err, "removing what an earlier run has left")
		}
	}
	return nil
}

// kinds removes the kinds and the role of the suite that any run has installed, unless another run is alive, which may use
// them and removes them itself. A run that begins in between writes its ID to them: they have changed then, and are not deleted.
func kinds(ctx context.Context, env *Env) error {
	var found []client.Object
	for _, object := range installation() {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			return errors.Wrapf(err, "looking for %s", object.GetName())
		}
		if err == nil && object.GetLabels()[behaviour.LabelRun] != "" && object.GetDeletionTimestamp() == nil {
			found = append(found, object)
		}
	}
	alive, _, err := others(ctx, env)
	if err != nil || len(alive) > 0 {
		return err
	}
	var failures []error
	for _, object := range found {
		read := client.Preconditions{UID: ptr.To(object.GetUID()), ResourceVersion: ptr.To(object.GetResourceVersion())}
		err := env.Client.Delete(ctx, object, read)
		failures = append(failures, errors.Wrapf(client.IgnoreNotFound(err), "removing %s", object.GetName()))
	}
	return stderrors.Join(failures...)
}
