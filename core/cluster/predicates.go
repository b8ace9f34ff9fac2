package cluster

import (
	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
)

// clusterChanged lets those updates of a Cluster pass that concern its controller; its own writes of the status do not.
func clusterChanged() predicate.Predicate {
	return predicates.Changes(predicates.NotOnlyStatus)
}

// reportChanged lets those updates pass that change what an object reports about Machines, or to which Cluster.
func reportChanged() predicate.Predicate {
	return predicates.Changes(func(before, after client.Object) bool {
		if was, is := reportsTo(before).Name, reportsTo(after).Name; was != is || is == "" {
			return was != is
		}
		switch after := after.(type) {
		case *clusterv1.MachineDeployment:
			before, ok := before.(*clusterv1.MachineDeployment)
			return !ok || before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Status, after.Status)
		case *clusterv1.MachineSet:
			before, ok := before.(*clusterv1.MachineSet)
			return !ok || before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Status, after.Status)
		case *clusterv1.Machine:
			before, ok := before.(*clusterv1.Machine)
			return !ok || !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
		}
		return false
	})
}
