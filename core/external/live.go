package external

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Live returns the metadata that the API server has of an object that a cache shows; nil when the object no longer exists, or another
// one has its name. An owner must be read like this before an owner reference to it is added: the garbage collector
// deletes whatever is owned by a UID that no longer exists.
func Live(
	ctx context.Context,
	apiReader client.Reader,
	cached client.Object,
	gvk schema.GroupVersionKind,
) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(gvk)
	err := apiReader.Get(ctx, client.ObjectKeyFromObject(cached), found)
	if apierrors.IsNotFound(err) || err == nil && found.UID != cached.GetUID() {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrapf(err, "reading %s %s", gvk.Kind, client.ObjectKeyFromObject(cached))
	}
	return found, nil
}

// MustLive fails with a Conflict when the API server does not have the owner any more.
func MustLive(ctx context.Context, apiReader client.Reader, owner client.Object, gvk schema.GroupVersionKind) error {
	live, err := Live(ctx, apiReader, owner, gvk)
	if err == nil && live == nil {
		return apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, owner.GetName(),
			errors.New("the cache has an owner that no longer exists"))
	}
	return err
}

// DeletePreconditions returns those of a deletion of exactly the object that was read: another may have its name by now. An object
// without finalizers must not have changed since either: an API server that deletes it at once can lose a finalizer that its
// provider adds in the same moment, and with it the machine behind the object. One that has a finalizer stays until that is
// removed, so it may change meanwhile, as it does with each heartbeat of its provider.
func DeletePreconditions(object client.Object) client.Preconditions {
	preconditions := client.Preconditions{UID: ptr.To(object.GetUID())}
	if len(object.GetFinalizers()) == 0 {
		preconditions.ResourceVersion = ptr.To(object.GetResourceVersion())
	}
	return preconditions
}
