package defaults

import (
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"
)

// MachineSet sets the label with the name of the Cluster, replicas (see Replicas), a selector for the set's own
// name where there is none, and the v of a version. Old is the set before the update, nil when it is being created.
//
// Replicas stay empty where the limits of the autoscaler cannot be read, which validation refuses. The selector of a
// set without a name (generateName: the API server makes the name after this) stays empty too, and the API server asks
// for one: a label without value would select the Machines of every such set.
func MachineSet(set, old *clusterv1.MachineSet) {
	setLabel(&set.Labels, clusterv1.ClusterNameLabel, set.Spec.ClusterName)
	var before *int32
	if old != nil {
		before = old.Spec.Replicas
	}
	if replicas, err := Replicas(set.Spec.Replicas, before, set.Annotations); err == nil {
		set.Spec.Replicas = ptr.To(replicas)
	}
	if len(set.Spec.Selector.MatchLabels)+len(set.Spec.Selector.MatchExpressions) == 0 && set.Name != "" {
		// A name that is too long for a label value is hashed.
		name := format.MustFormatValue(set.Name)
		setLabel(&set.Spec.Selector.MatchLabels, clusterv1.MachineSetNameLabel, name)
		setLabel(&set.Spec.Template.Labels, clusterv1.MachineSetNameLabel, name)
	}
	set.Spec.Template.Spec.Version = Version(set.Spec.Template.Spec.Version)
}
