package external

import (
	"context"
	"fmt"
	"slices"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OwnedElsewhereError means that a referenced object is controlled by something else than who refers to it.
// It is left alone: two owners would fight over it.
type OwnedElsewhereError struct {
	// Object names the referenced object.
	Object string
	// Owner is its controller.
	Owner metav1.OwnerReference
	// Namesake is true when Owner has the kind and the name of who refers to the object, and another UID.
	Namesake bool
}

// Error names both and the remedy.
func (e *OwnedElsewhereError) Error() string {
	if e.Namesake {
		return fmt.Sprintf("%s is controlled by an earlier %s of that name (UID %s): delete it, or refer to another object",
			e.Object, e.Owner.Kind, e.Owner.UID)
	}
	return fmt.Sprintf("%s is controlled by %s %s: refer to an object of its own", e.Object, e.Owner.Kind, e.Owner.Name)
}

// Foreign returns an error when the object has a controller other than owner, by the same rule as Own.
func Foreign(obj Object, owner client.Object, gvk schema.GroupVersionKind) error {
	_, err := ownedBy(obj, owner, gvk)
	return err
}

// Own makes owner the controller of the object and puts the cluster label on it, by one patch, and by none when
// both are there, as they are on objects that were created with an owner. An owner reference to the MachineSet that controls the
// owner is replaced: cores that create the object before its Machine set it meanwhile. Before an owner is added, apiReader is
// asked whether it still exists; if it does not, the error is a Conflict.
func Own(
	ctx context.Context,
	c client.Client,
	apiReader client.Reader,
	obj Object,
	owner client.Object,
	gvk schema.GroupVersionKind,
	cluster string,
) error {
	references, err := ownedBy(obj, owner, gvk)
	if err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(references, obj.GetOwnerReferences()) && obj.GetLabels()[clusterv1.ClusterNameLabel] == cluster {
		return nil
	}
	if !equality.Semantic.DeepEqual(references, obj.GetOwnerReferences()) {
		if err := MustLive(ctx, apiReader, owner, gvk); err != nil {
			return err
		}
	}
	before := obj.DeepCopy()
	obj.SetOwnerReferences(references)
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = cluster
	obj.SetLabels(labels)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return errors.Wrapf(c.Patch(ctx, obj.Unstructured, patch), "owning %s", name(obj))
}

// ownedBy returns the owner references that the object should have.
func ownedBy(obj Object, owner client.Object, gvk schema.GroupVersionKind) ([]metav1.OwnerReference, error) {
	want := metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
	references := slices.Clone(obj.GetOwnerReferences())
	references = slices.DeleteFunc(references, func(r metav1.OwnerReference) bool { return replaceable(r, owner) })
	for i, reference := range references {
		if reference.UID == owner.GetUID() {
			if !ptr.Deref(reference.Controller, false) {
				references[i] = want
			}
			// The garbage collector looks for the owner under the version named, which may be served no more.
			references[i].APIVersion = want.APIVersion
			return references, nil
		}
		if ptr.Deref(reference.Controller, false) {
			namesake := reference.Kind == gvk.Kind && reference.Name == owner.GetName() && group(reference) == gvk.Group
			return nil, &OwnedElsewhereError{Object: name(obj), Owner: reference, Namesake: namesake}
		}
	}
	return append(references, want), nil
}

// replaceable reports whether an owner reference is one that a MachineSet has left for the Machine to replace. One of another
// set than the Machine's, as its controller, means that the object is for a Machine of that set.
func replaceable(r metav1.OwnerReference, owner client.Object) bool {
	if r.Kind != "MachineSet" || group(r) != clusterv1.GroupVersion.Group {
		return false
	}
	set := metav1.GetControllerOf(owner)
	return !ptr.Deref(r.Controller, false) || set != nil && set.UID == r.UID
}

func group(r metav1.OwnerReference) string {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

func name(obj Object) string {
	return obj.GetKind() + " " + obj.GetNamespace() + "/" + obj.GetName()
}
