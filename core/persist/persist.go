// Package persist writes what a reconcile changed, in as few requests as possible: none when nothing
// changed, one patch for metadata and spec, one for the status.
package persist

import (
	"context"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Written says which patches were sent and succeeded.
type Written struct {
	// Object is true when metadata or spec were patched.
	Object bool
	// Status is true when the status was patched.
	Status bool
}

// Save patches the differences between the object as read (before) and as it shall be (after), metadata and
// spec first. status returns the object's status field. Both patches carry the resource version as read, since
// they replace whole lists (owner references, finalizers, conditions) in which others write as well: who comes
// late gets a conflict. On success after is what the server now has; on error its content is undefined.
func Save[O client.Object, S any](ctx context.Context, c client.Client, before, after O, status func(O) *S) (Written, error) {
	var written Written
	desired := *status(after)
	*status(after) = *status(before)
	if !equality.Semantic.DeepEqual(before, after) {
		if err := c.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return written, errors.Wrapf(err, "patching %T %s", after, client.ObjectKeyFromObject(before))
		}
		written.Object = true
	}
	if equality.Semantic.DeepEqual(*status(after), desired) {
		return written, nil
	}
	base := after.DeepCopyObject().(O)
	*status(after) = desired
	if err := c.Status().Patch(ctx, after, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return written, errors.Wrapf(err, "patching the status of %T %s", after, client.ObjectKeyFromObject(before))
	}
	written.Status = true
	return written, nil
}
