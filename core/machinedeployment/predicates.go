package machinedeployment

import (
	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
)

// deploymentChanged passes all events of deployments except updates of the status alone, which are our own writes.
func deploymentChanged() predicate.Predicate {
	return predicates.Changes[client.Object](predicates.NotOnlyStatus)
}

// setChanged passes all events of sets except updates in which nothing but the version differs.
func setChanged() predicate.Predicate {
	return predicates.Changes(func(before, after *clusterv1.MachineSet) bool {
		return predicates.NotOnlyStatus(before, after) || !equality.Semantic.DeepEqual(before.Status, after.Status)
	})
}

// clusterChanged passes events that matter to deployments: a Cluster that is created, deleted, paused or unpaused.
func clusterChanged() predicate.Predicate { return predicates.Changes(predicates.Paused) }
