package validate

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/admission/defaults"
)

// template validates the template of Machines of a MachineSet or MachineDeployment.
func template(from *clusterv1.MachineTemplateSpec, clusterName string) field.ErrorList {
	path := field.NewPath("spec", "template")
	spec := path.Child("spec")
	var found field.ErrorList
	if from.Spec.ClusterName != clusterName {
		found = append(found, field.Invalid(spec.Child("clusterName"), from.Spec.ClusterName,
			"differs from spec.clusterName: set both to "+quote(clusterName)))
	}
	found = append(found, bootstrap(spec.Child("bootstrap"), &from.Spec.Bootstrap)...)
	found = append(found, templateKind(spec.Child("bootstrap", "configRef", "kind"), from.Spec.Bootstrap.ConfigRef)...)
	found = append(found, templateKind(spec.Child("infrastructureRef", "kind"), from.Spec.InfrastructureRef)...)
	found = append(found, version(spec.Child("version"), from.Spec.Version)...)
	// Machines of sets and deployments are workers.
	found = append(found, taints(spec.Child("taints"), from.Spec.Taints, false)...)
	found = append(found, from.ObjectMeta.Validate(path.Child("metadata"))...)
	found = append(found, pastedLabels(path.Child("metadata", "labels"), from.Labels)...)
	found = append(found, pastedAnnotations(path.Child("metadata", "annotations"), from.Annotations)...)
	return append(found, annotationsAt(path.Child("metadata", "annotations"), from.Annotations, templateAnnotations)...)
}

// templateKind refuses a reference, where it is set, that names no template: Machines could not be created from it.
func templateKind(path *field.Path, ref clusterv1.ContractVersionedObjectReference) field.ErrorList {
	kind := strings.TrimSuffix(ref.Kind, clusterv1.TemplateSuffix)
	if !ref.IsDefined() || kind != ref.Kind && kind != "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path, ref.Kind, "is not a template kind: name one that ends in "+clusterv1.TemplateSuffix)}
}

// replicas refuses a number of Machines that is negative, or has no default.
func replicas(desired *int32, all map[string]string) field.ErrorList {
	if desired != nil {
		if *desired < 0 {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), *desired, "is negative: the least is 0")}
		}
		return nil
	}
	_, err := defaults.Replicas(nil, nil, all)
	var limit *defaults.LimitError
	if errors.As(err, &limit) {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(limit.Annotation), limit.Value,
			"is not a number of Machines, which spec.replicas follows where it is empty: set it to a whole number like 3, or set spec.replicas")}
	}
	return nil
}
