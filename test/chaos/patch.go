package chaos

import (
	"context"

	"github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patch changes an object as it was read; others may write at the same time.
func (r *run) patch(ctx context.Context, object client.Object, change func()) error {
	before := object.DeepCopyObject().(client.Object)
	change()
	return errors.Wrapf(r.plane.direct.Patch(ctx, object, client.MergeFrom(before)), "changing %T %s", object, object.GetName())
}

// patchSpec reads the object first.
func (r *run) patchSpec(ctx context.Context, object client.Object, change func()) error {
	if err := r.plane.direct.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return errors.Wrapf(err, "reading %T %s", object, object.GetName())
	}
	return r.patch(ctx, object, change)
}

func setLabel(object client.Object, key, value string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	object.SetLabels(labels)
}

func setAnnotation(object client.Object, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}
