package rewritten

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Wanted is what an owner needs on what it creates.
type Wanted struct {
	// Labels are those that the owner sets.
	Labels map[string]string
	// Selector is the one of the owner; nil matches all.
	Selector labels.Selector
	// Owner is the UID of the owner, which must be the controller of the object.
	Owner types.UID
}

// Found reports whether the owner finds an object again: it controls the object, and its selector matches.
func (w *Wanted) Found(object metav1.Object) bool {
	return w.Controls(object) && w.matches(object)
}

// Controls reports whether the owner is the controller of an object.
func (w *Wanted) Controls(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.UID == w.Owner
}

func (w *Wanted) matches(object metav1.Object) bool {
	return w.Selector == nil || w.Selector.Matches(labels.Set(object.GetLabels()))
}

// Differences describes how an object differs from what its owner wants: each label with both values, and the owner reference.
func (w *Wanted) Differences(object metav1.Object) []string {
	var found []string
	has := object.GetLabels()
	for _, key := range slices.Sorted(maps.Keys(w.Labels)) {
		switch value, ok := has[key]; {
		case !ok:
			found = append(found, fmt.Sprintf("label %s is missing, %q is wanted", key, w.Labels[key]))
		case value != w.Labels[key]:
			found = append(found, fmt.Sprintf("label %s is %q, %q is wanted", key, value, w.Labels[key]))
		}
	}
	for _, key := range w.forbidden(object) {
		found = append(found, fmt.Sprintf("label %s is %q, and the selector excludes that", key, has[key]))
	}
	if !w.Controls(object) {
		found = append(found, "the owner reference is missing")
	}
	return found
}

// forbidden are the keys of labels that others have added and that the selector excludes.
func (w *Wanted) forbidden(object metav1.Object) []string {
	if w.Selector == nil {
		return nil
	}
	var keys []string
	requirements, _ := w.Selector.Requirements()
	for _, requirement := range requirements {
		_, ours := w.Labels[requirement.Key()]
		_, has := object.GetLabels()[requirement.Key()]
		if has && !ours && !requirement.Matches(labels.Set(object.GetLabels())) {
			keys = append(keys, requirement.Key())
		}
	}
	return keys
}

// Restore gives an object, in memory, the labels that its owner wants.
func (w *Wanted) Restore(object metav1.Object) {
	restored := map[string]string{}
	maps.Copy(restored, object.GetLabels())
	for _, key := range w.forbidden(object) {
		delete(restored, key)
	}
	maps.Copy(restored, w.Labels)
	object.SetLabels(restored)
}

// Line describes an object that others rewrite.
func Line(kind string, object metav1.Object, differences []string) string {
	return fmt.Sprintf("%s %s%s: %s. An admission policy or webhook rewrites it: exclude this label there",
		kind, object.GetName(), prefix, strings.Join(differences, "; "))
}

// prefix begins the description of what is rewritten. Mentioned looks for it in the condition of a former process.
const prefix = " is not stored as it was sent"

// Mentioned reports whether a message, which an earlier reconcile has written, mentions an object as rewritten.
func Mentioned(message, kind, name string) bool {
	return strings.Contains(message, kind+" "+name+prefix)
}
