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

// kindAnnotation says in the Lease of a run which kind it looks at: only while its provider runs can what it has made be ended.
const kindAnnotation = "conformance.millwright.dev/kind"

// namespaceOf names the namespace of a run that makes its own.
func namespaceOf(run string) string { return "conformance-" + run }

// life is by what other runs see that this one is alive.
func (e *Env) life(kinds []version.Resolved) lease.Run {
	run := lease.Run{Client: e.Client, Suite: "provider", ID: e.Run, Namespace: e.Namespace, Logf: e.logf}
	if len(kinds) > 0 {
		run.Annotations = map[string]string{kindAnnotation: kinds[0].GVK.GroupKind().String()}
	}
	return run
}

// leftovers removes what runs on the same kind that were killed have left: machines may be among it, which cost. everywhere says that this
// run may look beyond its namespace.
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
			e.logf("run %s, which was killed, looked at %s and has left what it made in namespace %s: a run on that kind removes it",
				killed, kind, dead[i].Namespace)
			continue
		}
		e.logf("removing what run %s, which was killed, has left in namespace %s", killed, dead[i].Namespace)
		if err := e.bury(ctx, &dead[i], kinds, everywhere); err != nil {
			// This run can be made all the same, and the Lease that stays tells the next one.
			e.logf("what run %s has left stays: %v", killed, err)
		}
	}
	return ctx.Err()
}

// bury removes the objects of a dead run as it would have done itself, its namespace if it made that, and last its Lease.
func (e *Env) bury(ctx context.Context, dead *coordinationv1.Lease, kinds []version.Resolved, everywhere bool) error {
	of := *e
	of.Run, of.Namespace = dead.Labels[LabelRun], dead.Namespace
	c := newCleanup(&of)
	for _, kind := range kinds {
		c.kinds = append(c.kinds, kind.GVK)
	}
	once, err := of.madeOnce(ctx, everywhere)
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

// madeOnce finds what a run has made once of a sample, in the order of this one: that of the other is not known.
func (e *Env) madeOnce(ctx context.Context, everywhere bool) (found []*unstructured.Unstructured, err error) {
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
			// What is made for each Cluster has its owner.
			if key := string(list.Items[i].GetUID()); !seen[key] && len(list.Items[i].GetOwnerReferences()) == 0 {
				seen[key] = true
				found = append(found, &list.Items[i])
			}
		}
	}
	return found, nil
}
