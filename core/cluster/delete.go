package cluster

import (
	"context"
	"slices"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/external"
	"millwright.dev/core/index"
)

// namedInMessage is how many objects a message names before it only counts.
const namedInMessage = 3

// deletionStage is what is deleted at one stage of a Cluster's deletion.
type deletionStage struct {
	kind string
	list client.ObjectList
	// selects chooses among the objects of the kind; nil for all.
	selects func(client.Object) bool
}

// deleteWorkers deletes MachineDeployments, then the MachineSets that are left, then the Machines that are left: owners are
// deleted first, so that nothing is recreated. It waits for each kind to be gone. The Machines of the control plane stay: the
// workers are drained by the API server that runs on them.
func (r *Reconciler) deleteWorkers(ctx context.Context, s *scope) outcome.Outcome {
	const reason = clusterv1.ClusterDeletingWaitingForWorkersDeletionReason
	return r.deleteStages(ctx, s, reason,
		deletionStage{kind: "MachineDeployment", list: &clusterv1.MachineDeploymentList{}},
		deletionStage{kind: "MachineSet", list: &clusterv1.MachineSetList{}},
		deletionStage{kind: "Machine", list: &clusterv1.MachineList{}, selects: func(m client.Object) bool { return !ofControlPlane(m) }})
}

// deleteControlPlaneMachines deletes the Machines of a control plane without a control plane object, and those that such an object
// has left behind: while it exists, its controller decides when they are deleted.
func (r *Reconciler) deleteControlPlaneMachines(ctx context.Context, s *scope) outcome.Outcome {
	const reason = clusterv1.ClusterDeletingWaitingForControlPlaneDeletionReason
	return r.deleteStages(
		ctx,
		s,
		reason,
		deletionStage{kind: "control plane Machine", list: &clusterv1.MachineList{}, selects: ofControlPlane},
	)
}

// ofControlPlane is true for a Machine of a control plane.
func ofControlPlane(m client.Object) bool {
	_, ok := m.GetLabels()[clusterv1.MachineControlPlaneLabel]
	return ok
}

func (r *Reconciler) deleteStages(ctx context.Context, s *scope, reason string, stages ...deletionStage) outcome.Outcome {
	for _, stage := range stages {
		left, err := r.deleteAll(ctx, s.Object, stage)
		if err != nil {
			s.progress = deletion{clusterv1.ClusterDeletingInternalErrorReason, "The " + stage.kind + "s cannot be deleted: " + err.Error()}
			return outcome.FromError(err)
		}
		if len(left) > 0 {
			s.progress = deletion{reason, "Waiting for the deletion of " + enumerate(stage.kind, left)}
			return outcome.Wait()
		}
	}
	return outcome.Continue()
}

// deleteAll deletes the objects of one stage, and returns the names of those that are still there.
func (r *Reconciler) deleteAll(ctx context.Context, cluster *clusterv1.Cluster, stage deletionStage) ([]string, error) {
	if err := r.Client.List(
		ctx,
		stage.list,
		client.InNamespace(cluster.Namespace),
		client.MatchingFields{index.Cluster: cluster.Name},
	); err != nil {
		return nil, errors.Wrapf(err, "listing the objects of Cluster %s", client.ObjectKeyFromObject(cluster))
	}
	var names []string
	for _, obj := range items(stage.list) {
		if stage.selects != nil && !stage.selects(obj) {
			continue
		}
		names = append(names, obj.GetName())
		if !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		if err := r.Client.Delete(ctx, obj, external.DeletePreconditions(obj)); persist.IgnoreGone(err) != nil {
			return nil, errors.Wrapf(err, "deleting %T %s", obj, client.ObjectKeyFromObject(obj))
		}
	}
	return names, nil
}

// items returns the objects of a list.
func items(list client.ObjectList) []client.Object {
	switch typed := list.(type) {
	case *clusterv1.MachineDeploymentList:
		return pointers(typed.Items)
	case *clusterv1.MachineSetList:
		return pointers(typed.Items)
	case *clusterv1.MachineList:
		return pointers(typed.Items)
	}
	return nil
}

func pointers[T any, O interface {
	*T
	client.Object
}](items []T) []client.Object {
	objects := make([]client.Object, 0, len(items))
	for i := range items {
		objects = append(objects, O(&items[i]))
	}
	return objects
}

// enumerate names some objects and counts the rest, in a stable order.
func enumerate(kind string, names []string) string {
	slices.Sort(names)
	if len(names) == 1 {
		return kind + " " + names[0]
	}
	return kind + "s " + conditions.ListNames(names, namedInMessage)
}

// deleteControlPlane deletes the control plane object and waits for it to be gone.
func (r *Reconciler) deleteControlPlane(ctx context.Context, s *scope) outcome.Outcome {
	return r.deleteReferenced(ctx, s, &s.controlPlane, clusterv1.ClusterDeletingWaitingForControlPlaneDeletionReason)
}

// deleteInfrastructure deletes the infrastructure cluster and waits for it to be gone.
func (r *Reconciler) deleteInfrastructure(ctx context.Context, s *scope) outcome.Outcome {
	return r.deleteReferenced(ctx, s, &s.infrastructure, clusterv1.ClusterDeletingWaitingForInfrastructureDeletionReason)
}

func (r *Reconciler) deleteReferenced(ctx context.Context, s *scope, reference *reference, reason string) outcome.Outcome {
	if !reference.ref.IsDefined() {
		return outcome.Continue()
	}
	s.progress = deletion{reason, "Waiting for the deletion of " + external.Name(reference.ref)}
	object, err := r.Kinds.Get(ctx, reference.ref, s.Object.Namespace, s.Request())
	if err != nil {
		if apierrors.IsNotFound(err) || external.NotInstalled(err) {
			return outcome.Continue()
		}
		s.progress.message = err.Error()
		return reference.failed(err)
	}
	if controlledByOther(object, s.Original) {
		return outcome.Continue()
	}
	if object.GetDeletionTimestamp().IsZero() {
		// What was read may have been replaced meanwhile by an object of the same name with another owner.
		uid, resourceVersion := object.GetUID(), object.GetResourceVersion()
		err := r.Client.Delete(ctx, object.Unstructured, client.Preconditions{UID: &uid, ResourceVersion: &resourceVersion})
		if persist.IgnoreGone(err) != nil {
			return s.notDeleted(reference, err)
		}
	}
	return outcome.Wait()
}

// notDeleted reports why an object that goes with the Cluster could not be deleted. A lost race means nothing about it.
func (s *scope) notDeleted(reference *reference, err error) outcome.Outcome {
	if !persist.LostRace(err) {
		s.progress.message = external.Name(reference.ref) + " cannot be deleted: " + err.Error()
	}
	return outcome.FromError(errors.Wrapf(err, "deleting %s of Cluster %s", external.Name(reference.ref), s.Request()))
}

// controlledByOther is true for an object with another controlling owner than the Cluster. It is not deleted with the Cluster.
func controlledByOther(object external.Object, cluster *clusterv1.Cluster) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.UID != cluster.UID
}

// release removes the finalizer, now that nothing is left of the Cluster.
func (r *Reconciler) release(ctx context.Context, s *scope) outcome.Outcome {
	err := s.RemoveFinalizer(ctx, clusterv1.ClusterFinalizer)
	if refusal := persist.Refusal(err); refusal != "" {
		s.progress = deletion{clusterv1.ClusterDeletingInternalErrorReason, "Nothing is left of the Cluster, but the object stays: " + refusal}
	} else if err != nil {
		s.skipSave = true
	}
	return outcome.FromError(err)
}
