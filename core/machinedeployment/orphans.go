package machinedeployment

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/core/machines"
)

// orphaned are Machines that a deleted set of the deployment has left (kubectl delete machineset --cascade=orphan), and that are what the
// deployment wants. The new set gets the label and the name of the deleted one, so that it adopts them.
type orphaned struct {
	// hash is their label that distinguishes sets, suffix the end of it.
	hash, suffix string
	count        int
}

// orphaning reports whether a set is being deleted without its Machines. They can be adopted when it is gone.
func orphaning(s *scope) bool {
	return slices.ContainsFunc(s.sets, func(set *clusterv1.MachineSet) bool {
		return !set.DeletionTimestamp.IsZero() && controllerutil.ContainsFinalizer(set, metav1.FinalizerOrphanDependents)
	})
}

// findOrphans asks the API server for Machines of the present template that have no controller. It returns those of the set that left most.
func (r *Reconciler) findOrphans(ctx context.Context, s *scope) (orphaned, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
	if err := r.APIReader.List(ctx, list, client.InNamespace(s.deployment.Namespace),
		client.MatchingLabelsSelector{Selector: s.settings.selector}, client.MatchingLabels(identity(s.deployment))); err != nil {
		return orphaned{}, errors.Wrapf(err, "listing Machines without a MachineSet of MachineDeployment %s", s.Key())
	}
	counts := map[string]int{}
	for i := range list.Items {
		machine := &list.Items[i]
		_, preserved := machine.Labels[machines.PreservedLabel]
		kept := preserved || machine.Labels[machines.CreatorLabel] == machines.NoCreator
		if metav1.GetControllerOf(machine) == nil && machine.DeletionTimestamp.IsZero() && !kept {
			counts[machine.Labels[clusterv1.MachineDeploymentUniqueLabel]]++
		}
	}
	var most orphaned
	for _, hash := range slices.Sorted(maps.Keys(counts)) {
		suffix, ours := strings.CutPrefix(hash, templateHash(&s.deployment.Spec.Template)+"-")
		if ours && suffix != "" && cmp.Compare(counts[hash], most.count) > 0 && !inUse(s, suffix) {
			most = orphaned{hash: hash, suffix: suffix, count: counts[hash]}
		}
	}
	return most, nil
}

// inUse reports whether a set that stays has the name that ends in the suffix. The set that left the Machines may still be in deletion: the
// garbage collector removes its finalizer before the core removes its own. The creation is then retried until the name is free.
func inUse(s *scope, suffix string) bool {
	return slices.ContainsFunc(s.sets, func(set *clusterv1.MachineSet) bool {
		return set.DeletionTimestamp.IsZero() && set.Name == s.deployment.Name+"-"+suffix
	})
}
