package validate

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// What controllers of this project write on MachineSets and Machines, repeated here as those of annotations.go are.
const (
	ofSets    = "machineset.millwright.dev/"
	adopt     = ofSets + "adopt"
	createdBy = "safety.millwright.dev/created-by"
	preserved = "machine.millwright.dev/preserved"
)

// pastedLabels rejects labels of Machines in a template: each Machine would count as created by another object, or as preserved.
func pastedLabels(path *field.Path, all map[string]string) field.ErrorList {
	const because = "is set by the controllers on single Machines, by which they count them: remove it"
	var found field.ErrorList
	for _, key := range []string{preserved, createdBy} {
		if value, set := all[key]; set {
			found = append(found, field.Invalid(path.Key(key), value, because))
		}
	}
	return found
}

// pastedAnnotations rejects annotations of MachineSets, and of Machines that they have created, where they have no effect, or one on all
// Machines.
func pastedAnnotations(path *field.Path, all map[string]string) field.ErrorList {
	var found field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(all)) {
		switch {
		case key == adopt:
			found = append(found, field.Invalid(path.Key(key), all[key], "adopts instances only on a MachineSet: annotate the MachineSet itself"))
		case strings.HasPrefix(key, ofSets):
			found = append(found, field.Invalid(path.Key(key), all[key], "is written by the controllers on MachineSets and Machines: remove it"))
		}
	}
	return found
}

// pastedOwner rejects what a MachineDeployment has of an exported MachineSet: nothing would remove the finalizer, and the MachineDeployment
// would be deleted with the owner.
func pastedOwner(deployment *clusterv1.MachineDeployment) field.ErrorList {
	found := pastedFinalizer(deployment.Finalizers, clusterv1.MachineSetFinalizer)
	if owner := metav1.GetControllerOf(deployment); owner != nil && owner.Kind == "MachineDeployment" {
		found = append(found, field.Invalid(field.NewPath("metadata", "ownerReferences"), owner.Kind+" "+owner.Name,
			"is the controller of a MachineSet, not of a MachineDeployment, which would be deleted with it: remove the owner reference"))
	}
	return found
}

// pastedFinalizer rejects the finalizer of another kind.
func pastedFinalizer(all []string, foreign string) field.ErrorList {
	if !slices.Contains(all, foreign) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "finalizers"), foreign,
		"is the finalizer of another kind, so that nothing would remove it when the object is deleted: remove it")}
}
