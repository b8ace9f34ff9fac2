package remediation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// GroupOf identifies what the limit of replacements is for: the deployment of a set, or the set itself.
func GroupOf(set metav1.Object) types.UID {
	if owner := metav1.GetControllerOf(set); owner != nil && owner.Kind == "MachineDeployment" {
		return owner.UID
	}
	return set.GetUID()
}

// Owned is a MachineSet with the Machines that it controls.
type Owned struct {
	*clusterv1.MachineSet
	Machines []*clusterv1.Machine
}

// ViewOf returns a View of all sets of a Cluster and of the deployments that control them.
func ViewOf(sets []Owned, deployments []*clusterv1.MachineDeployment) View {
	view := View{Flights: map[types.UID]Flight{}}
	groups := map[types.UID][]Owned{}
	for _, set := range sets {
		groups[GroupOf(set)] = append(groups[GroupOf(set)], set)
		view.Machines += len(set.Machines)
		for _, machine := range set.Machines {
			if machines.FailedHealthCheck(machine) {
				view.Unhealthy++
			}
		}
	}
	of := map[types.UID]*clusterv1.MachineDeployment{}
	for _, deployment := range deployments {
		of[deployment.UID] = deployment
	}
	for group, owned := range groups {
		view.Flights[group] = InFlight(SetsOf(of[group], owned))
		view.Wanted += wanted(of[group], owned)
	}
	return view
}

// wanted is how many Machines a deployment shall have, or a set without one. The sets of a deployment are not added up: while a rollout
// moves replicas from one to another, a cache that is behind shows some of them in both.
func wanted(deployment *clusterv1.MachineDeployment, owned []Owned) int {
	if deployment != nil {
		return machines.Replicas(deployment.Spec.Replicas, deployment.Annotations)
	}
	sum := 0
	for _, set := range owned {
		sum += machines.Replicas(set.Spec.Replicas, set.Annotations)
	}
	return sum
}

// SetsOf describes the sets of a deployment to InFlight; the deployment is nil for a set without one.
func SetsOf(deployment *clusterv1.MachineDeployment, owned []Owned) []Set {
	newest, missing := int64(0), 0
	if deployment != nil {
		missing = machines.Replicas(deployment.Spec.Replicas, deployment.Annotations)
	}
	for _, set := range owned {
		newest = max(newest, machines.Revision(set))
	}
	var sets []Set
	for _, set := range owned {
		replicas := machines.Replicas(set.Spec.Replicas, set.Annotations)
		missing -= max(replicas, len(set.Machines))
		sets = append(sets, Set{
			Machines: set.Machines, Replicas: replicas, Records: RecordsOf(set.Annotations),
			// Those of earlier revisions go with the rollout; with OnDelete they are replaced when they are deleted.
			Outgoing: machines.Revision(set) < newest && set.Annotations[clusterv1.DisableMachineCreateAnnotation] != "true",
		})
	}
	if missing > 0 && deployment.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		// A set was scaled down permanently, and the one that replaces the Machine was not scaled up yet.
		sets = append(sets, Set{Replicas: missing})
	}
	return sets
}
