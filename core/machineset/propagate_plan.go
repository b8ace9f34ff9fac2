package machineset

import (
	"encoding/json"
	"maps"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/naming"
)

// PropagatedAnnotation holds, on a Machine, the keys of the labels and annotations that its MachineSet has put
// there, so that they can be taken back when they are taken out of the template, and those of others stay.
const PropagatedAnnotation = "machineset.millwright.dev/propagated"

// propagated is the content of PropagatedAnnotation.
type propagated struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// toPropagated lists the keys that a set gives to its Machines. Those labels that every Machine has in any case
// are left out: they are never taken back, and most Machines then need no such annotation.
func toPropagated(set *clusterv1.MachineSet) propagated {
	always := []string{
		clusterv1.ClusterNameLabel, clusterv1.MachineSetNameLabel,
		clusterv1.MachineDeploymentNameLabel, clusterv1.MachineDeploymentUniqueLabel,
	}
	keys := propagated{Annotations: slices.Sorted(maps.Keys(templateAnnotations(set)))}
	for _, key := range slices.Sorted(maps.Keys(set.Spec.Template.Labels)) {
		if !slices.Contains(always, key) {
			keys.Labels = append(keys.Labels, key)
		}
	}
	return keys
}

// rememberPropagated writes PropagatedAnnotation, or removes it where it would be empty.
func rememberPropagated(machine *clusterv1.Machine, set *clusterv1.MachineSet) {
	keys := toPropagated(set)
	if len(keys.Labels)+len(keys.Annotations) == 0 {
		delete(machine.Annotations, PropagatedAnnotation)
		return
	}
	value, err := json.Marshal(keys)
	if err != nil {
		// Lists of strings can always be marshalled.
		return
	}
	if machine.Annotations == nil {
		machine.Annotations = map[string]string{}
	}
	machine.Annotations[PropagatedAnnotation] = string(value)
}

// withdrawn returns the keys that were propagated to a Machine and no longer are.
func withdrawn(machine *clusterv1.Machine, set *clusterv1.MachineSet) propagated {
	var before propagated
	// What cannot be read was not written by us, so nothing is taken back for it.
	if err := json.Unmarshal([]byte(machine.Annotations[PropagatedAnnotation]), &before); err != nil {
		return propagated{}
	}
	return propagated{
		Labels:      missing(before.Labels, set.Spec.Template.Labels),
		Annotations: missing(before.Annotations, set.Spec.Template.Annotations),
	}
}

func missing(keys []string, in map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		_, ok := in[key]
		return ok
	})
}

// applyMetadata sets what is propagated and deletes what is withdrawn in the labels and annotations of the
// Machine itself, or of what was created for it.
func applyMetadata(set *clusterv1.MachineSet, gone propagated, labels, annotations map[string]string) {
	for _, key := range gone.Labels {
		delete(labels, key)
	}
	for _, key := range gone.Annotations {
		delete(annotations, key)
	}
	maps.Copy(labels, naming.MachineLabels(set))
	maps.Copy(annotations, templateAnnotations(set))
}

// propagate applies to a Machine, in memory, the fields of the template that reach existing Machines (see the
// table in README.md). All other fields stay as they were when the Machine was created. A Machine that is being
// deleted only gets those that have a bearing on its end.
func propagate(machine *clusterv1.Machine, set *clusterv1.MachineSet) {
	from := set.Spec.Template.Spec.DeepCopy()
	defaultMachine(from)
	machine.Spec.Deletion = from.Deletion
	machine.Spec.ReadinessGates = from.ReadinessGates
	machine.Spec.MinReadySeconds = from.MinReadySeconds
	machine.Spec.Taints = from.Taints
	if !machine.DeletionTimestamp.IsZero() {
		return
	}
	gone := withdrawn(machine, set)
	if machine.Labels == nil {
		machine.Labels = map[string]string{}
	}
	if machine.Annotations == nil {
		machine.Annotations = map[string]string{}
	}
	applyMetadata(set, gone, machine.Labels, machine.Annotations)
	rememberPropagated(machine, set)
}
