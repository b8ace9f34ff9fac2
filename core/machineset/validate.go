package machineset

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"

	"millwright.dev/core/admission/defaults"
	"millwright.dev/core/admission/validate"
)

// applyDefaults sets what admission would have set, for a set that has passed none: number of replicas, selector, label
// and the v of a version. The number that the set had before is the one in its status.
func applyDefaults(set *clusterv1.MachineSet) {
	before := &clusterv1.MachineSet{}
	before.Spec.Replicas = set.Status.Replicas
	defaults.MachineSet(set, before)
}

// effectiveSelector is the selector of the set; an empty one means the label with the set's name, which is admission's
// default.
func effectiveSelector(set *clusterv1.MachineSet) (labels.Selector, error) {
	selector := set.Spec.Selector
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		selector.MatchLabels = map[string]string{clusterv1.MachineSetNameLabel: format.MustFormatValue(set.Name)}
	}
	return metav1.LabelSelectorAsSelector(&selector)
}

// specErrors lists what is wrong with a set, each with the field and what to do. Admission refuses such sets where it is
// installed; without it, a condition of the set asks for the correction. Errors of annotations count only where the number of replicas
// depends on them: the others can be ignored.
func specErrors(set *clusterv1.MachineSet) []string {
	var found []string
	for _, wrong := range validate.MachineSet(set, nil) {
		if set.Spec.Replicas == nil || !strings.Contains(wrong.Field, "metadata.annotations") {
			found = append(found, wrong.Error())
		}
	}
	return found
}
