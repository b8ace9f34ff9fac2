package machines

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"
)

const (
	// PreserveAnnotation on a Machine keeps it for inspection instead of having it replaced and deleted: PreserveWhenFailed or
	// PreserveNow. "false" is the same as no annotation, and ends a preservation.
	PreserveAnnotation = "machine.millwright.dev/preserve"
	// MCMPreserveAnnotation is that of Gardener's machine-controller-manager, with the same values; PreserveAnnotation goes first.
	MCMPreserveAnnotation = "node.machine.sapcloud.io/preserve"
	// PreservedLabel is on a Machine that is preserved: its value is the name of the MachineDeployment that it was of, or of the
	// MachineSet if there is none. Which of both it is, PreservedFromAnnotation says.
	PreservedLabel = "machine.millwright.dev/preserved"
	// PreservedFromAnnotation is the MachineSet that a preserved Machine was of, and the labels that it had for that, as JSON.
	PreservedFromAnnotation = "machine.millwright.dev/preserved-from"
	// PreserveUntilAnnotation is when a preserved Machine is deleted, as an RFC 3339 time. Users may change it.
	PreserveUntilAnnotation = "machine.millwright.dev/preserve-until"
	// PreserveMaxAnnotation on a MachineDeployment is how many failed Machines of it are preserved without being asked for.
	PreserveMaxAnnotation = "machine.millwright.dev/preserve-failed-max"
	// PreservedTaint is on the Node of a preserved Machine, with the effect NoSchedule.
	PreservedTaint = "machine.millwright.dev/preserved"
)

// Values of PreserveAnnotation. MCM's auto-preserved, which it writes itself, means nothing here.
const (
	PreserveNow        = "now"
	PreserveWhenFailed = "when-failed"
	PreserveNever      = "false"
)

// Preservation is what the annotations of a Machine ask for: one of the values above, or "" for nothing.
func Preservation(machine *clusterv1.Machine) string {
	for _, key := range []string{PreserveAnnotation, MCMPreserveAnnotation} {
		switch value, ok := machine.Annotations[key]; {
		case value == PreserveNow, value == PreserveWhenFailed, value == PreserveNever:
			return value
		case ok && key == PreserveAnnotation:
			// Admission refuses it. What a user wanted to keep is kept.
			return PreserveWhenFailed
		}
	}
	return ""
}

// Preserved reports whether a Machine is preserved: it is of no MachineSet any more.
func Preserved(machine *clusterv1.Machine) bool {
	_, ok := machine.Labels[PreservedLabel]
	return ok
}

// preservedFrom is the value of PreservedFromAnnotation.
type preservedFrom struct {
	MachineSet string `json:"machineSet"`
	// MachineDeployment is that of the set; "" for a set without one.
	MachineDeployment string            `json:"machineDeployment,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	// Since is when the Machine was preserved.
	Since *time.Time `json:"since,omitempty"`
}

// Preserve changes a Machine so that it is preserved: it is not controlled by its MachineSet any more, and has none of the labels by
// which it, or its deployment, would take it back, so that it counts as no replica and holds up no rollout; and no health check has
// it replaced.
func Preserve(machine *clusterv1.Machine, set *clusterv1.MachineSet, now, until time.Time) {
	lost := []string{clusterv1.MachineSetNameLabel, clusterv1.MachineDeploymentNameLabel, clusterv1.MachineDeploymentUniqueLabel}
	lost = slices.AppendSeq(lost, maps.Keys(set.Spec.Selector.MatchLabels))
	for _, expression := range set.Spec.Selector.MatchExpressions {
		if expression.Operator == metav1.LabelSelectorOpIn || expression.Operator == metav1.LabelSelectorOpExists {
			lost = append(lost, expression.Key)
		}
	}
	now = now.UTC()
	from := preservedFrom{
		MachineSet: set.Name, MachineDeployment: set.Labels[clusterv1.MachineDeploymentNameLabel], Labels: map[string]string{}, Since: &now,
	}
	machine.Labels, machine.Annotations = clone(machine.Labels), clone(machine.Annotations)
	for _, key := range lost {
		if value, ok := machine.Labels[key]; ok && key != clusterv1.ClusterNameLabel {
			from.Labels[key] = value
			delete(machine.Labels, key)
		}
	}
	machine.Labels[PreservedLabel] = PreservedOf(set)
	text, _ := json.Marshal(from) // Strings always can be.
	machine.Annotations[PreservedFromAnnotation] = string(text)
	machine.Annotations[PreserveUntilAnnotation] = until.UTC().Format(time.RFC3339)
	machine.Annotations[clusterv1.MachineSkipRemediationAnnotation] = ""
	machine.OwnerReferences = slices.DeleteFunc(slices.Clone(machine.OwnerReferences), func(owner metav1.OwnerReference) bool {
		return owner.UID == set.UID
	})
}

// PreservedOf is the value of PreservedLabel for the Machines of a set: a name, or its hash if it is too long for a label.
func PreservedOf(set *clusterv1.MachineSet) string {
	if of := set.Labels[clusterv1.MachineDeploymentNameLabel]; of != "" {
		return of
	}
	return format.MustFormatValue(set.Name)
}

func clone(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

// PreservedFromGroup reports whether a preserved Machine was of the MachineDeployment of a set, or of the set if it has none: the label
// has the name alone, and a MachineDeployment and a MachineSet may have the same. One whose annotation cannot be read may have been.
func PreservedFromGroup(machine metav1.Object, set *clusterv1.MachineSet) bool {
	if machine.GetLabels()[PreservedLabel] != PreservedOf(set) {
		return false
	}
	from, err := readPreservedFrom(machine)
	if err != nil {
		return true
	}
	deployment := set.Labels[clusterv1.MachineDeploymentNameLabel]
	return from.MachineDeployment == deployment && (deployment != "" || from.MachineSet == set.Name)
}

// PreservedKind is the kind of what a preserved Machine was of; "" if that cannot be read.
func PreservedKind(machine metav1.Object) string {
	switch from, err := readPreservedFrom(machine); {
	case err != nil:
		return ""
	case from.MachineDeployment != "":
		return "MachineDeployment"
	}
	return "MachineSet"
}

// PreservedSince is when a Machine was preserved; zero if that cannot be read.
func PreservedSince(machine metav1.Object) time.Time {
	from, err := readPreservedFrom(machine)
	if err != nil || from.Since == nil {
		return time.Time{}
	}
	return *from.Since
}

func readPreservedFrom(machine metav1.Object) (preservedFrom, error) {
	var from preservedFrom
	err := json.Unmarshal([]byte(machine.GetAnnotations()[PreservedFromAnnotation]), &from)
	if from.MachineDeployment == "" {
		// Those who preserved it may not have written it yet; the labels have it as well.
		from.MachineDeployment = from.Labels[clusterv1.MachineDeploymentNameLabel]
	}
	return from, err
}

// PreserveMax is how many failed Machines of a deployment are preserved without being asked for, and what is wrong with the annotation that
// says so. One that cannot be read shows that a user wants to keep some: one is kept at least, as what is deleted does not come back,
// and no more than that or than the default, as what is kept costs.
func PreserveMax(deployment *clusterv1.MachineDeployment, byDefault int) (limit int, specError string) {
	text, ok := "", false
	if deployment != nil {
		text, ok = deployment.Annotations[PreserveMaxAnnotation]
	}
	if !ok {
		return byDefault, ""
	}
	if limit, err := strconv.Atoi(text); err == nil && limit >= 0 {
		return limit, ""
	}
	limit = max(byDefault, 1)
	return limit, fmt.Sprintf("annotation %s of MachineDeployment %s is %q, and not a number of Machines: %d of those that fail are kept for "+
		"inspection until it is corrected or removed", PreserveMaxAnnotation, deployment.Name, text, limit)
}

// PreservedUntil is when a preserved Machine is to be deleted. ok is false if the annotation cannot be read.
func PreservedUntil(machine *clusterv1.Machine) (until time.Time, ok bool) {
	until, err := time.Parse(time.RFC3339, machine.Annotations[PreserveUntilAnnotation])
	return until, err == nil
}
