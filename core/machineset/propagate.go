package machineset

import (
	"context"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
)

// propagate brings existing Machines up to date with the fields of the template that reach them. Bootstrap
// config and infrastructure machine get the labels and annotations first and the Machine last: as long as the
// Machine differs, an interrupted update is completed.
func (r *Reconciler) propagate(ctx context.Context, s *scope) outcome.Outcome {
	var failures []error
	for i, machine := range s.machines {
		if metadataOnly(machine) || !differs(machine, s.Object) {
			continue
		}
		updated := machine.DeepCopy()
		propagate(updated, s.Object)
		if updated.DeletionTimestamp.IsZero() {
			if known, err := r.propagateToChildren(ctx, s, machine); err != nil || !known {
				failures = append(failures, err)
				continue
			}
		}
		err := r.Client.Patch(ctx, updated, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{}))
		if persist.IgnoreGone(err) != nil {
			failures = append(failures, errors.Wrapf(err, "updating Machine %s from its template", client.ObjectKeyFromObject(machine)))
			continue
		}
		s.machines[i] = updated
	}
	return outcome.FromError(kerrors.NewAggregate(failures))
}

// differs reports whether propagate would change the Machine. The copies are shallow but for the metadata, as
// this runs for every Machine at each reconcile.
func differs(machine *clusterv1.Machine, set *clusterv1.MachineSet) bool {
	updated := *machine
	updated.Labels, updated.Annotations = cloned(machine.Labels), cloned(machine.Annotations)
	propagate(&updated, set)
	return !equality.Semantic.DeepEqual(machine.Spec, updated.Spec) ||
		!sameStrings(machine.Labels, updated.Labels) || !sameStrings(machine.Annotations, updated.Annotations)
}

// propagateToChildren gives labels and annotations to what was created for a Machine. What belongs to something else, which the
// Machine itself complains of, is left as it is. known is false when something cannot be read yet.
func (r *Reconciler) propagateToChildren(ctx context.Context, s *scope, machine *clusterv1.Machine) (known bool, err error) {
	gone := withdrawn(machine, s.Object)
	for _, child := range childrenOf(machine, s) {
		object, known, err := r.read(ctx, s, &child)
		if err != nil || !known {
			return false, err
		}
		if object == nil || !object.GetDeletionTimestamp().IsZero() || !s.isOf(machine, object) {
			continue
		}
		if err := r.patchMetadata(ctx, object, gone, s.Object); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *Reconciler) patchMetadata(
	ctx context.Context,
	object *unstructured.Unstructured,
	gone propagated,
	set *clusterv1.MachineSet,
) error {
	labels, annotations := cloned(object.GetLabels()), cloned(object.GetAnnotations())
	applyMetadata(set, gone, labels, annotations)
	if sameStrings(labels, object.GetLabels()) && sameStrings(annotations, object.GetAnnotations()) {
		return nil
	}
	before := object.DeepCopy()
	// A patch with the UID is refused for another object of that name.
	before.SetUID("")
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
	err := r.Client.Patch(ctx, object, client.MergeFrom(before))
	return errors.Wrapf(persist.IgnoreGone(err), "updating %s %s from its template", object.GetKind(), client.ObjectKeyFromObject(object))
}

// cloned copies a map, and makes one of nil.
func cloned(values map[string]string) map[string]string {
	result := make(map[string]string, len(values))
	for key, value := range values {
		result[key] = value
	}
	return result
}

// sameStrings compares maps; nil and empty are the same.
func sameStrings(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if other, ok := b[key]; !ok || other != value {
			return false
		}
	}
	return true
}
