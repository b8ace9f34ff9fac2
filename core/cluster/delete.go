package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/core/external"
	"millwright.dev/core/index"
	"millwright.dev/core/outcome"
)

// namedInMessage is how many objects a message names before it only counts.
const namedInMessage = 3

// deleteWorkers deletes MachineDeployments, then the MachineSets that are left, then the Machines that are left:
// whoever owns the others goes first, so that nothing is made again. It waits for each kind to be gone.
func (r *Reconciler) deleteWorkers(ctx context.Context, s *scope) outcome.Outcome {
	for _, contents := range []struct {
		kind string
		list client.ObjectList
	}{
		{"MachineDeployment", &clusterv1.MachineDeploymentList{}},
		{"MachineSet", &clusterv1.MachineSetList{}},
		{"Machine", &clusterv1.MachineList{}},
	} {
		left, err := r.deleteAll(ctx, s.cluster, contents.list)
		if err != nil {
			s.progress = deletion{clusterv1.ClusterDeletingInternalErrorReason, "The workers cannot be deleted, see the log of the core"}
			return outcome.Fail(err)
		}
		if len(left) > 0 {
			s.progress = deletion{clusterv1.ClusterDeletingWaitingForWorkersDeletionReason, "Waiting for the deletion of " + enumerate(contents.kind, left)}
			return outcome.Wait()
		}
	}
	return outcome.Continue()
}

// deleteAll deletes the Cluster's objects of one kind, and returns the names of those that are still there.
func (r *Reconciler) deleteAll(ctx context.Context, cluster *clusterv1.Cluster, list client.ObjectList) ([]string, error) {
	if err := r.Client.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Cluster: cluster.Name}); err != nil {
		return nil, errors.Wrapf(err, "listing the workers of Cluster %s", client.ObjectKeyFromObject(cluster))
	}
	var names []string
	for _, obj := range contents(list) {
		names = append(names, obj.GetName())
		if !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		if err := r.Client.Delete(ctx, obj); err != nil && !apierrors.IsNotFound(err) {
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
	if object.GetDeletionTimestamp().IsZero() {
		if err := r.Client.Delete(ctx, object.Unstructured); err != nil && !apierrors.IsNotFound(err) {
			return outcome.Fail(errors.Wrapf(err, "deleting %s of Cluster %s", external.Name(reference.ref), s.request()))
		}
	}
	return outcome.Wait()
}

// release lets the Cluster go.
func (r *Reconciler) release(ctx context.Context, s *scope) outcome.Outcome {
	s.progress = deletion{clusterv1.ClusterDeletingDeletionCompletedReason, ""}
	s.gone = true
	if !controllerutil.RemoveFinalizer(s.cluster, clusterv1.ClusterFinalizer) {
		return outcome.Continue()
	}
	return outcome.Fail(client.IgnoreNotFound(r.patchMetadata(ctx, s, "removing the finalizer of")))
}
