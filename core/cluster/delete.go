package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/external"
	"millwright.dev/core/index"
)

// namedInMessage is how many objects a message names before it only counts.
const namedInMessage = 3

// deletionStage is what goes at one step of a Cluster's deletion.
type deletionStage struct {
	kind string
	list client.ObjectList
	// concerned says which objects of the kind go at this step; nil for all.
	concerned func(client.Object) bool
}

// deleteWorkers deletes MachineDeployments, then the MachineSets that are left, then the Machines that are left:
// whoever owns the others goes first, so that nothing is made again. It waits for each kind to be gone. The Machines of
// the control plane stay: the workers are drained by the API server that runs on them.
func (r *Reconciler) deleteWorkers(ctx context.Context, s *scope) outcome.Outcome {
	const reason = clusterv1.ClusterDeletingWaitingForWorkersDeletionReason
	return r.deleteParts(ctx, s, reason,
		deletionStage{kind: "MachineDeployment", list: &clusterv1.MachineDeploymentList{}},
		deletionStage{kind: "MachineSet", list: &clusterv1.MachineSetList{}},
		deletionStage{kind: "Machine", list: &clusterv1.MachineList{}, concerned: func(m client.Object) bool { return !ofControlPlane(m) }})
}

// deleteControlPlaneMachines deletes the Machines of a control plane that no object stands for, and those that such an
// object has left behind: while it exists, only it may say when they go.
func (r *Reconciler) deleteControlPlaneMachines(ctx context.Context, s *scope) outcome.Outcome {
	const reason = clusterv1.ClusterDeletingWaitingForControlPlaneDeletionReason
	return r.deleteParts(ctx, s, reason, deletionStage{kind: "control plane Machine", list: &clusterv1.MachineList{}, concerned: ofControlPlane})
}

// ofControlPlane says whether a Machine is one of a control plane.
func ofControlPlane(m client.Object) bool {
	_, ok := m.GetLabels()[clusterv1.MachineControlPlaneLabel]
	return ok
}

func (r *Reconciler) deleteParts(ctx context.Context, s *scope, reason string, parts ...deletionStage) outcome.Outcome {
	for _, p := range parts {
		left, err := r.deleteAll(ctx, s.cluster, p)
		if err != nil {
			s.progress = deletion{clusterv1.ClusterDeletingInternalErrorReason, "The " + p.kind + "s cannot be deleted: " + err.Error()}
			return outcome.FromError(err)
		}
		if len(left) > 0 {
			s.progress = deletion{reason, "Waiting for the deletion of " + enumerate(p.kind, left)}
			return outcome.Wait()
		}
	}
	return outcome.Continue()
}

// deleteAll deletes one part of the Cluster, and returns the names of the objects that are still there.
func (r *Reconciler) deleteAll(ctx context.Context, cluster *clusterv1.Cluster, p deletionStage) ([]string, error) {
	if err := r.Client.List(ctx, p.list, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Cluster: cluster.Name}); err != nil {
		return nil, errors.Wrapf(err, "listing what Cluster %s consists of", client.ObjectKeyFromObject(cluster))
	}
	var names []string
	for _, obj := range contents(p.list) {
		if p.concerned != nil && !p.concerned(obj) {
			continue
		}
		names = append(names, obj.GetName())
		if !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		// Another object may have its name by now.
		uid := obj.GetUID()
		if err := r.Client.Delete(ctx, obj, client.Preconditions{UID: &uid}); err != nil && !apierrors.IsNotFound(err) {
			return nil, errors.Wrapf(err, "deleting %T %s", obj, client.ObjectKeyFromObject(obj))
		}
	}
	return names, nil
}

// contents returns the objects of a list.
func contents(list client.ObjectList) []client.Object {
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
	if len(names) <= namedInMessage {
		return kind + "s " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%ss %s and %d more", kind, strings.Join(names[:namedInMessage], ", "), len(names)-namedInMessage)
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
	object, err := r.Kinds.Get(ctx, reference.ref, s.cluster.Namespace, s.request())
	if err != nil {
		if apierrors.IsNotFound(err) || external.NotInstalled(err) {
			return outcome.Continue()
		}
		s.progress.message = err.Error()
		return reference.failed(err)
	}
	if controlledByOther(object, s.original) {
		return outcome.Continue()
	}
	if object.GetDeletionTimestamp().IsZero() {
		// What was read may have been replaced meanwhile by an object of the same name that somebody else owns.
		uid, resourceVersion := object.GetUID(), object.GetResourceVersion()
		err := r.Client.Delete(ctx, object.Unstructured, client.Preconditions{UID: &uid, ResourceVersion: &resourceVersion})
		if apierrors.IsConflict(err) {
			return outcome.FromError(err)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			s.progress.message = external.Name(reference.ref) + " cannot be deleted: " + err.Error()
			return outcome.FromError(errors.Wrapf(err, "deleting %s of Cluster %s", external.Name(reference.ref), s.request()))
		}
	}
	return outcome.Wait()
}

// controlledByOther says whether an object belongs to something else than the Cluster. It is not deleted with it.
func controlledByOther(object external.Object, cluster *clusterv1.Cluster) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.UID != cluster.UID
}

// release lets the Cluster go.
func (r *Reconciler) release(ctx context.Context, s *scope) outcome.Outcome {
	s.progress = deletion{clusterv1.ClusterDeletingDeletionCompletedReason, ""}
	s.gone = true
	if !controllerutil.RemoveFinalizer(s.cluster, clusterv1.ClusterFinalizer) {
		return outcome.Continue()
	}
	err := r.patchMetadata(ctx, s, "removing the finalizer of")
	if refusal := persist.Refusal(err); refusal != "" {
		s.gone = false
		s.cluster.Finalizers = s.original.Finalizers
		s.progress = deletion{clusterv1.ClusterDeletingInternalErrorReason, "Nothing is left of the Cluster, but the object stays: " + refusal}
	}
	return outcome.FromError(client.IgnoreNotFound(err))
}
