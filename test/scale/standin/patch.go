package standin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patchObject merges the fields into the object without reading it.
func patchObject(ctx context.Context, c client.Client, object *metav1.PartialObjectMetadata, fields map[string]any) error {
	patch, err := mergePatch(fields)
	if err != nil {
		return err
	}
	target := reference(object)
	return errors.Wrapf(c.Patch(ctx, target, patch), "patching %s %s", target.Kind, object.Name)
}

// patchStatus merges the fields into the object's status.
func patchStatus(ctx context.Context, c client.Client, object *metav1.PartialObjectMetadata, status map[string]any) error {
	patch, err := mergePatch(map[string]any{"status": status})
	if err != nil {
		return err
	}
	target := reference(object)
	return errors.Wrapf(c.Status().Patch(ctx, target, patch), "patching the status of %s %s", target.Kind, object.Name)
}

// reference is what a patch needs to know of an object; the cached object stays as it is.
func reference(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	target := metadata(object.GroupVersionKind())
	target.Namespace, target.Name = object.Namespace, object.Name
	return target
}

func mergePatch(fields map[string]any) (client.Patch, error) {
	content, err := json.Marshal(fields)
	return client.RawPatch(types.MergePatchType, content), errors.Wrap(err, "encoding a patch")
}

// ready is a Ready condition as both versions of the contract read it.
func ready(reason string) metav1.Condition {
	return metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionTrue,
		Reason:             reason,
		LastTransitionTime: metav1.NewTime(time.Now()),
	}
}
