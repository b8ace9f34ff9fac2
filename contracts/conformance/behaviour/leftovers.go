package behaviour

import (
	"context"

	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/lease"
	"millwright.dev/contracts/version"
)

// kindAnnotation names in the Lease of a run the kind that it verifies: only while its provider runs can its objects be deleted.
const kindAnnotation = "conformance.millwright.dev/kind"

// namespaceOf names the namespace of a run that creates its own.
func namespaceOf(run string) string { return "conformance-" + run }

// life shows other runs that this one is alive.
func (e *Env) life(kinds []version.Resolved) lease.Run {
	run := lease.Run{Client: e.Client, Suite: "provider", ID: e.Run, Namespace: e.Namespace, Logf: e.logf}
	if len(kinds) > 0 {
		run.Annotations = map[string]string{kindAnnotation: kinds[0].GVK.GroupKind().String()}
	}
	return run
}

// leftovers removes what killed runs on the same kind have left, such as machines, which cost money. everywhere means that this
// run may list other namespaces than its own.
func (e *Env) leftovers(ctx context.Context, kinds []version.Resolved, everywhere bool) error {
	life := e.life(kinds)
	if !everywhere {
		life.Within = e.Namespace
	}
	_, dead, err := life.Others(ctx)
	if err != nil {
		return err
	}
	for i := range dead {
		killed, kind := dead[i].Labels[LabelRun], dead[i].Annotations[kindAnnotation]
		if kind != life.Annotations[kindAnnotation] {
			e.logf("run %s on %s was killed and has left objects in namespace %s: a run on that kind removes them",
				killed, kind, dead[i].Namespace)
			continue
		}
		e.logf("removing what the killed run %s has left in namespace %s", killed, dead[i].Namespace)
		if err := e.removeRun(ctx, &dead[i], kinds, everywhere); err != nil {
			// This run can continue, and the remaining Lease shows the next one what is left.
			e.logf("what run %s has left is not removed: %v", killed, err)
		}
	}
	return ctx.Err()
}

// removeRun removes the objects of a dead run as it would have done itself, its namespace if it created that, and last its Lease.
func (e *Env) removeRun(ctx context.Context, dead *coordinationv1.Lease, kinds []version.Resolved, everywhere bool) error {
	of := *e
	of.Run, of.Namespace = dead.Labels[LabelRun], dead.Namespace
	c := newCleanup(&of)
	for _, kind := range kinds {
		c.kinds = append(c.kinds, kind.GVK)
	}
	once, err := of.onceObjects(ctx, everywhere)
	if err != nil {
		return err
	}
	c.once = once
	if dead.Namespace == namespaceOf(of.Run) {
		c.namespace = &corev1.Namespace{}
		c.namespace.Name = dead.Namespace
	}
	if err := c.run(ctx); err != nil {
		return err
	}
	return errors.Wrap(client.IgnoreNotFound(e.Client.Delete(context.WithoutCancel(ctx), dead)), "removing its Lease")
}

// onceObjects finds what a dead run has created once from its sample, in the order of this run's sample: its own order is not known.
func (e *Env) onceObjects(ctx context.Context, everywhere bool) (found []*unstructured.Unstructured, err error) {
	seen := map[string]bool{}
	for _, document := range e.Sample.once {
		object, err := decode(document)
		if err != nil || object == nil {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(object.GroupVersionKind().GroupVersion().WithKind(object.GetKind() + "List"))
		options := []client.ListOption{client.MatchingLabels{LabelRun: e.Run}}
		if !everywhere {
			options = append(options, client.InNamespace(e.Namespace))
		}
		if err := e.Client.List(ctx, list, options...); err != nil {
			return nil, errors.Wrapf(err, "looking for %s", object.GetKind())
		}
		for i := range list.Items {
			// Objects for each Cluster have an owner.
			if key := string(list.Items[i].GetUID()); !seen[key] && len(list.Items[i].GetOwnerReferences()) == 0 {
				seen[key] = true
				found = append(found, &list.Items[i])
			}
		}
	}
	return found, nil
}
