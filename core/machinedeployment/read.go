package machinedeployment

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/core/machines"
)

// readCluster reads the Cluster that the deployment belongs to.
func (r *Reconciler) readCluster(ctx context.Context, s *scope) outcome.Outcome {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: s.deployment.Namespace, Name: s.deployment.Spec.ClusterName}
	switch err := r.Client.Get(ctx, key, cluster); {
	case err == nil:
		s.cluster = cluster
	case !apierrors.IsNotFound(err):
		return outcome.FromError(errors.Wrapf(err, "reading Cluster %s", key))
	}
	return outcome.Continue()
}

// checkPaused stops everything while the deployment or its Cluster is paused. spec.paused stops the rollout alone; see makePlan.
func (r *Reconciler) checkPaused(_ context.Context, s *scope) outcome.Outcome {
	if s.paused = paused.By(s.Object, s.cluster); len(s.paused) > 0 {
		return outcome.Wait()
	}
	return outcome.Continue()
}

// checkSpec stops what would go wrong. The Cluster is waited for by a watch, the rest by an edit.
func (r *Reconciler) checkSpec(_ context.Context, s *scope) outcome.Outcome {
	s.settings, s.specErrors = resolve(s.deployment)
	if len(s.specErrors) == 0 {
		s.specErrors = specErrors(s.deployment)
	}
	if s.cluster == nil {
		s.specErrors = append(s.specErrors, fmt.Sprintf(
			"spec.clusterName: Cluster %q does not exist in this namespace: create it", s.deployment.Spec.ClusterName))
	}
	if len(s.specErrors) > 0 {
		for _, text := range s.specErrors {
			r.warnOnce(s, InvalidSpecEvent, "Validate", text)
		}
		return outcome.Wait()
	}
	return outcome.Continue()
}

// readSets finds the sets that the deployment controls, and those that it might adopt. It goes no further
// while one of them is older in the cache than what was written last.
func (r *Reconciler) readSets(ctx context.Context, s *scope) outcome.Outcome {
	list := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.deployment.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return outcome.FromError(errors.Wrapf(err, "listing MachineSets in namespace %s", s.deployment.Namespace))
	}
	selector := effectiveSelector(s.deployment)
	matcher, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		// It is reported by checkSpec. Without a selector nothing is adopted.
		matcher = labels.Nothing()
	}
	for i := range list.Items {
		set := &list.Items[i]
		switch {
		case metav1.IsControlledBy(set, s.deployment):
			if wait := r.Sets.Lag(set); wait > 0 {
				s.stale = true
				return outcome.WaitFor(wait)
			}
			s.sets = append(s.sets, set)
		case metav1.GetControllerOf(set) == nil && matcher.Matches(labels.Set(set.Labels)):
			s.candidates = append(s.candidates, set)
		}
	}
	bySeniority(s.sets)
	return outcome.Continue()
}

// readMachines finds the Machines of each set.
func (r *Reconciler) readMachines(ctx context.Context, s *scope) outcome.Outcome {
	s.machines = map[types.UID][]*clusterv1.Machine{}
	for _, set := range s.sets {
		all, err := machines.ControlledBy(ctx, r.Client, set)
		if err != nil {
			return outcome.FromError(err)
		}
		s.machines[set.UID] = all
	}
	s.read = true
	return outcome.Continue()
}

// unknownSets asks the API server whether there are sets of the deployment that the cache does not show: before
// one is created, so that there are never two, and before the deployment goes. Labels play no part in it, as others may change them. Sets
// that the deployment has created and does not control stop the creation of others.
func (r *Reconciler) unknownSets(ctx context.Context, s *scope) (bool, error) {
	unknown, strays := false, []string{}
	creator := machines.NewCreator(s.deployment)
	known := map[types.UID]bool{}
	for _, set := range s.sets {
		known[set.UID] = true
	}
	if err := machines.EachLive(ctx, r.APIReader, s.deployment.Namespace, "MachineSetList", func(set *metav1.PartialObjectMetadata) {
		switch controlled := metav1.IsControlledBy(set, s.deployment); {
		case controlled && !known[set.UID]:
			unknown = true
		case !controlled && creator.Counts(set):
			strays = append(strays, set.Name)
		}
	}); err != nil {
		return false, err
	}
	if len(strays) >= machines.Margin {
		r.blockCreation(s, strays)
	}
	return unknown, nil
}

// blockCreation notes that the deployment has lost sets that it has created.
func (r *Reconciler) blockCreation(s *scope, strays []string) {
	text := fmt.Sprintf("The MachineDeployment no longer owns %d MachineSets that it has created (%s), and %d are allowed. "+
		"Find out what changed their owner or labels, then delete them; label those that you keep with %s=%s",
		len(strays), strings.Join(strays[:min(len(strays), 5)], ", "), machines.Margin-1, machines.CreatorLabel, machines.NoCreator)
	s.blockers = append(s.blockers, text)
	r.warnOnce(s, TooManyCreatedEvent, "CreateMachineSet", text)
}

// warnOnce records a warning, unless the condition ScalingUp has the text already.
func (r *Reconciler) warnOnce(s *scope, reason, action, text string) {
	found := meta.FindStatusCondition(s.Original.Status.Conditions, clusterv1.MachineDeploymentScalingUpCondition)
	if found == nil || !strings.Contains(found.Message, text) {
		r.warn(s, nil, reason, action, "%s", text)
	}
}
