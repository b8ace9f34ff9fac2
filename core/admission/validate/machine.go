package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels"
)

// Machine validates a Machine, and its change from the old one.
func Machine(machine, old *clusterv1.Machine) field.ErrorList {
	found := machineAlone(machine)
	if old != nil {
		found = ratchet(found, machineAlone(old))
		found = append(found, sameCluster(machine.Spec.ClusterName, old.Spec.ClusterName)...)
	}
	return found
}

func machineAlone(machine *clusterv1.Machine) field.ErrorList {
	spec := field.NewPath("spec")
	_, controlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]
	var found field.ErrorList
	// What boots a Machine of a MachinePool belongs to the pool.
	if !labels.IsMachinePoolOwned(machine) {
		found = append(found, bootstrap(spec.Child("bootstrap"), &machine.Spec.Bootstrap)...)
	}
	found = append(found, version(spec.Child("version"), machine.Spec.Version)...)
	found = append(found, taints(spec.Child("taints"), machine.Spec.Taints, controlPlane)...)
	return append(found, annotations(machine.Annotations, machineAnnotations)...)
}

// bootstrap refuses a Machine without bootstrap data.
func bootstrap(path *field.Path, from *clusterv1.Bootstrap) field.ErrorList {
	if from.ConfigRef.IsDefined() || from.DataSecretName != nil {
		return nil
	}
	return field.ErrorList{field.Required(path, "name a bootstrap config in configRef, or a Secret with bootstrap data in dataSecretName")}
}

// sameCluster refuses that an object is moved to another Cluster.
func sameCluster(now, before string) field.ErrorList {
	if now == before {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "clusterName"),
		"is immutable: leave it "+quote(before)+", or delete the object and create it for the other Cluster")}
}
