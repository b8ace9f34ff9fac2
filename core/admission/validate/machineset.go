package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineSet validates a MachineSet, and its change from the old one.
func MachineSet(set, old *clusterv1.MachineSet) field.ErrorList {
	found := setAlone(set)
	if old != nil {
		found = ratchet(found, setAlone(old))
		found = append(found, sameCluster(set.Spec.ClusterName, old.Spec.ClusterName)...)
		found = append(found, sameSetSelector(set, old)...)
	}
	return found
}

func setAlone(set *clusterv1.MachineSet) field.ErrorList {
	spec := &set.Spec
	found := pastedFinalizer(set.Finalizers, clusterv1.MachineDeploymentFinalizer)
	found = append(found, replicas(spec.Replicas, set.Annotations)...)
	found = append(found, setSelector(set)...)
	found = append(found, template(&spec.Template, spec.ClusterName)...)
	found = append(found, machineNaming(spec.MachineNaming, spec.ClusterName, set.Name)...)
	found = append(found, skippedPreflightChecks(set.Annotations)...)
	return append(found, annotations(set.Annotations, setAnnotations)...)
}
