package machineset

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/template"
	"millwright.dev/core/admission/defaults"
	"millwright.dev/core/machines"
	"millwright.dev/core/naming"
	"millwright.dev/core/remediation"
)

var setKind = clusterv1.GroupVersion.WithKind("MachineSet")

// templateAnnotations are those of the template, except for what the core records on a Machine of what it has done: no template may
// set that.
func templateAnnotations(set *clusterv1.MachineSet) map[string]string {
	annotations := maps.Clone(set.Spec.Template.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == remediation.ReplacesAnnotation || key == ProviderIDAnnotation || key == AdoptedAnnotation
	})
	return annotations
}

// desiredMachine is a new Machine of the set, complete: nothing has to be patched into it before its bootstrap
// config and infrastructure machine exist, whose names it has already.
func desiredMachine(set *clusterv1.MachineSet, name string) *clusterv1.Machine {
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       set.Namespace,
			Name:            name,
			Labels:          naming.MachineLabels(set),
			Annotations:     templateAnnotations(set),
			Finalizers:      []string{clusterv1.MachineFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, setKind)},
		},
		Spec: *set.Spec.Template.Spec.DeepCopy(),
	}
	machine.Labels[machines.CreatorLabel] = machines.CreatorOf(set)
	machine.Spec.ClusterName = set.Spec.ClusterName
	machine.Spec.ProviderID = "" // Whose instance it has is found out; a template has none.
	pointTo(&machine.Spec.InfrastructureRef, name)
	if machine.Spec.Bootstrap.ConfigRef.IsDefined() {
		pointTo(&machine.Spec.Bootstrap.ConfigRef, name)
	}
	defaultMachine(&machine.Spec)
	rememberPropagated(machine, set)
	return machine
}

// pointTo turns a reference to a template into one to what is created from it.
func pointTo(ref *clusterv1.ContractVersionedObjectReference, name string) {
	// The kind was checked by specErrors.
	if kind, err := template.KindOf(ref.Kind); err == nil {
		ref.Kind = kind
	}
	ref.Name = name
}

// defaultMachine sets the defaults of admission for a Machine.
func defaultMachine(spec *clusterv1.MachineSpec) {
	spec.Version = defaults.Version(spec.Version)
	spec.Deletion.NodeDeletionTimeoutSeconds = defaults.NodeDeletionTimeout(spec.Deletion.NodeDeletionTimeoutSeconds)
}
