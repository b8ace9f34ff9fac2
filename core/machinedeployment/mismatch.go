package machinedeployment

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/naming"
)

// labelsFor are the labels that the deployment wants the Machines of a set to have.
func labelsFor(deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet) map[string]string {
	wanted := naming.SetLabels(deployment)
	// The selector of a set keeps the label that others may change on the set.
	hash := cmp.Or(set.Spec.Selector.MatchLabels[clusterv1.MachineDeploymentUniqueLabel], set.Labels[clusterv1.MachineDeploymentUniqueLabel])
	if hash != "" {
		wanted[clusterv1.MachineDeploymentUniqueLabel] = hash
	}
	return wanted
}

// selects reports whether the selector of a set matches the labels that the deployment wants its Machines to have. A set
// whose template had others than it selects could neither create Machines nor keep those that it has.
func selects(deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet) bool {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(labelsFor(deployment, set)))
}

// mismatched describes what is wrong with a set whose selector does not match, and what to do.
func mismatched(set *clusterv1.MachineSet, consequence string) string {
	return fmt.Sprintf(
		"MachineSet %s %s: its selector %q does not match the labels in spec.template.metadata.labels of the MachineDeployment. "+
			"Add the labels there, or change the labels of the MachineSet so that spec.selector does not match it",
		set.Name,
		consequence,
		metav1.FormatLabelSelector(&set.Spec.Selector),
	)
}

// refuse notes that a set is not adopted, and records an event the first time.
func (r *Reconciler) refuse(s *scope, set *clusterv1.MachineSet) {
	line := mismatched(set, "is not adopted")
	s.mismatches = append(s.mismatches, line)
	found := meta.FindStatusCondition(s.Original.Status.Conditions, clusterv1.MachineDeploymentRollingOutCondition)
	if found == nil || !strings.Contains(found.Message, line) {
		r.warn(s, set, SelectorMismatchReason, "Adopt", "%s", line)
	}
}

// selectorMismatches are the sets that were refused, and those of the deployment whose labels stay as they are.
func selectorMismatches(s *scope) []string {
	lines := s.mismatches
	for _, set := range s.sets {
		if set.DeletionTimestamp.IsZero() && !resting(s, set) && !selects(s.deployment, set) {
			lines = append(lines, mismatched(set, "keeps the labels of its template"))
		}
	}
	return lines
}
