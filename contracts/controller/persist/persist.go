// Package persist writes what a reconcile changed, in as few requests as possible: none when nothing
// changed, one patch for metadata and spec, one for the status. Reconcilers use it by Save of package scopes.
package persist

import (
	"context"
	"reflect"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Written reports which patches were sent and succeeded.
type Written struct {
	// Object is true when metadata or spec were patched.
	Object bool
	// Status is true when the status was patched.
	Status bool
}

// Object patches metadata and spec, if they differ. Afterwards after has what the server has, with the status that
// it had before the call; base is the object as the server has it, to compare the status with.
//
// The patch carries the resource version as read, since it replaces whole lists (owner references, finalizers) in
// which others write as well: who comes late gets a conflict. status returns the object's status field.
//
// On error after has metadata and spec of before again, so that the status can still be written, see Refusal.
func Object[O client.Object, S any](ctx context.Context, c client.Client, before, after O, status func(O) *S) (base O, err error) {
	desired := *status(after)
	defer func() { *status(after) = desired }()
	*status(after) = *status(before)
	if equality.Semantic.DeepEqual(before, after) {
		return before, nil
	}
	if err := c.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		reflect.ValueOf(after).Elem().Set(reflect.ValueOf(before.DeepCopyObject()).Elem())
		return before, errors.Wrapf(err, "patching %s", NameOf(before))
	}
	return after.DeepCopyObject().(O), nil
}

// Status patches the status, if it differs from that of base, and reports whether it did. Like Object it loses races:
// the list of conditions is replaced as a whole, and others write conditions too.
func Status[O client.Object, S any](ctx context.Context, c client.Client, base, after O, status func(O) *S) (bool, error) {
	return patchStatus(ctx, c, base, after, status, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// OwnStatus is Status for kinds whose status nothing else writes: the patch cannot lose a race, so that a write of the spec
// meanwhile, by another controller or a user, costs no second attempt. A status is about the generation that it names.
func OwnStatus[O client.Object, S any](ctx context.Context, c client.Client, base, after O, status func(O) *S) (bool, error) {
	return patchStatus(ctx, c, base, after, status, client.MergeFrom(base))
}

func patchStatus[O client.Object, S any](
	ctx context.Context,
	c client.Client,
	base, after O,
	status func(O) *S,
	patch client.Patch,
) (bool, error) {
	if equality.Semantic.DeepEqual(*status(base), *status(after)) {
		return false, nil
	}
	if err := c.Status().Patch(ctx, after, patch); err != nil {
		return false, errors.Wrapf(err, "patching the status of %s", NameOf(base))
	}
	if after.GetUID() != base.GetUID() {
		return false, replaced(base)
	}
	return true, nil
}

// replaced is the conflict that the API server does not find, as it compares no UIDs when a status is patched: what has the status now was
// created since the object was read. Its own status is written once it is.
func replaced(obj client.Object) error {
	return apierrors.NewConflict(schema.GroupResource{}, obj.GetName(), errors.Errorf("another object has the name of %s now", NameOf(obj)))
}

// NameOf names an object in messages for users, for example "Machine default/worker-1". Its type has the name of its kind.
func NameOf(obj client.Object) string {
	return reflect.Indirect(reflect.ValueOf(obj)).Type().Name() + " " + client.ObjectKeyFromObject(obj).String()
}
