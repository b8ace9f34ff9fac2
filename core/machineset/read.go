package machineset

import (
	"context"
	"fmt"
	"slices"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/core/index"
	"millwright.dev/core/machines"
)

// readContext reads the Cluster and the deployment that the set belongs to.
func (r *Reconciler) readContext(ctx context.Context, s *scope) outcome.Outcome {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: s.Object.Namespace, Name: s.Object.Spec.ClusterName}
	switch err := r.Client.Get(ctx, key, cluster); {
	case err == nil:
		s.cluster = cluster
	case !apierrors.IsNotFound(err):
		return outcome.FromError(errors.Wrapf(err, "reading Cluster %s", key))
	}
	owner := metav1.GetControllerOf(s.Object)
	if owner == nil || owner.Kind != "MachineDeployment" {
		return outcome.Continue()
	}
	deployment := &clusterv1.MachineDeployment{}
	key.Name = owner.Name
	switch err := r.Client.Get(ctx, key, deployment); {
	case err == nil && deployment.UID == owner.UID:
		s.deployment = deployment
		s.outdated = machines.Outdated(deployment, s.Object, s.Now)
	case client.IgnoreNotFound(err) != nil:
		return outcome.FromError(errors.Wrapf(err, "reading MachineDeployment %s", key))
	}
	return outcome.Continue()
}

// checkPaused stops everything while the set or its Cluster is paused.
func (r *Reconciler) checkPaused(_ context.Context, s *scope) outcome.Outcome {
	if s.paused = paused.By(s.Object, s.cluster); len(s.paused) > 0 {
		return outcome.Wait()
	}
	return outcome.Continue()
}

// checkSpec stops what would go wrong. The Cluster is waited for by a watch, the rest by an edit of the set.
func (r *Reconciler) checkSpec(ctx context.Context, s *scope) outcome.Outcome {
	s.specErrors = specErrors(s.Object)
	if s.cluster == nil {
		s.specErrors = append(s.specErrors, fmt.Sprintf(
			"spec.clusterName: Cluster %q does not exist in this namespace: create it", s.Object.Spec.ClusterName))
	}
	s.replicas = machines.Replicas(s.Object.Spec.Replicas, s.Object.Annotations)
	if len(s.specErrors) > 0 {
		for _, text := range s.specErrors {
			r.warnOnce(ctx, s, invalidSpecEvent, "Validate", text)
		}
		return outcome.Wait()
	}
	return outcome.Continue()
}

// readMachines finds the Machines that the set controls, and those that it might adopt.
func (r *Reconciler) readMachines(ctx context.Context, s *scope) outcome.Outcome {
	owned, err := machines.ControlledBy(ctx, r.Client, s.Object)
	if err != nil {
		return outcome.FromError(err)
	}
	s.machines = r.expectations.settle(s.Object.UID, owned, s.Now)
	s.machinesRead = true
	selector, err := effectiveSelector(s.Object)
	if err != nil {
		// It is reported by checkSpec. Without a selector the set adopts and releases nothing.
		return outcome.Continue()
	}
	s.selector = selector
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace), client.MatchingFields{index.Controller: index.NoController},
		client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return outcome.FromError(errors.Wrapf(err, "listing Machines without a controller in namespace %s", s.Object.Namespace))
	}
	s.candidates = machines.Pointers(list.Items)
	return outcome.Continue()
}

// verify ensures that nothing is created or deleted based on a cache that is behind: once after the
// start of the process, and after each write whose effect is unknown, the API server itself is asked which
// Machines there are. It is asked for metadata only. Where the cache was behind, s.machines is corrected.
func (r *Reconciler) verify(ctx context.Context, s *scope) error {
	if r.expectations.verified(s.Object.UID) {
		return nil
	}
	// Whatever the set has created or adopted matches its selector. Without a valid one it only deletes, and all
	// that it has created has its name in a label.
	selector := s.selector
	if selector == nil {
		selector = labels.SelectorFromSet(labels.Set{clusterv1.MachineSetNameLabel: format.MustFormatValue(s.Object.Name)})
	}
	// The cache is read before the API server as well: a Machine that goes meanwhile is in the answer and no longer in the
	// cache, and must not count as one that the cache does not show yet.
	before, err := machines.ControlledBy(ctx, r.Client, s.Object)
	if err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
	if err := r.APIReader.List(
		ctx,
		list,
		client.InNamespace(s.Object.Namespace),
		client.MatchingLabelsSelector{Selector: selector},
	); err != nil {
		return errors.Wrapf(err, "listing the Machines of MachineSet %s", s.Key())
	}
	var live, listed []*clusterv1.Machine
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], s.Object) {
			live = append(live, &clusterv1.Machine{ObjectMeta: list.Items[i].ObjectMeta})
		}
	}
	cached, err := machines.ControlledBy(ctx, r.Client, s.Object)
	if err != nil {
		return err
	}
	for _, machine := range before {
		if selector.Matches(labels.Set(machine.Labels)) {
			listed = append(listed, machine)
		}
	}
	r.expectations.verify(s.Object.UID, live, listed, s.Now)
	s.machines = withMarks(r.expectations.settle(s.Object.UID, cached, s.Now), live)
	return nil
}

// confirm asks the API server which Machines there are and how they are marked, whatever was known before: once
// before a scale-down, since what lowered the number of replicas has chosen the Machines to go a moment ago.
func (r *Reconciler) confirm(ctx context.Context, s *scope) error {
	r.expectations.invalidate(s.Object.UID)
	return r.verify(ctx, s)
}

// withMarks gives the Machines the annotations that the API server has. They keep the version under which the rest of
// them was read: one that has changed is not deleted before all of it is known.
func withMarks(machines, live []*clusterv1.Machine) []*clusterv1.Machine {
	annotations := make(map[types.UID]map[string]string, len(live))
	for _, machine := range live {
		annotations[machine.UID] = machine.Annotations
	}
	marked := slices.Clone(machines)
	for i, machine := range machines {
		if fresh, ok := annotations[machine.UID]; ok && !sameStrings(fresh, machine.Annotations) {
			changed := *machine
			changed.Annotations = fresh
			marked[i] = &changed
		}
	}
	return marked
}

// requeueAfterUnseen requeues the set while a created Machine is missing in the cache: it may have been deleted before
// a watch showed it.
func (r *Reconciler) requeueAfterUnseen(_ context.Context, s *scope) outcome.Outcome {
	until := r.expectations.unseenUntil(s.Object.UID)
	if until.IsZero() {
		return outcome.Continue()
	}
	return outcome.ContinueAfter(until.Sub(s.Now))
}

// uids is the set of UIDs of Machines.
func uids(machines []*clusterv1.Machine) map[types.UID]bool {
	result := make(map[types.UID]bool, len(machines))
	for _, machine := range machines {
		result[machine.UID] = true
	}
	return result
}
