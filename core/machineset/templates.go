package machineset

import (
	"context"
	"fmt"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/template"
	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
	"millwright.dev/core/machines"
)

// readTemplates reads the templates of new Machines. A missing template blocks new Machines only:
// deletions and updates continue. A watch requeues the set when the template appears.
func (r *Reconciler) readTemplates(ctx context.Context, s *scope) outcome.Outcome {
	spec := &s.Object.Spec.Template.Spec
	infrastructure, err := r.readTemplate(ctx, s, spec.InfrastructureRef)
	if err != nil {
		return outcome.FromError(err)
	}
	s.infrastructure = infrastructure
	if !spec.Bootstrap.ConfigRef.IsDefined() {
		return outcome.Continue()
	}
	s.bootstrap, err = r.readTemplate(ctx, s, spec.Bootstrap.ConfigRef)
	return outcome.FromError(err)
}

// awaitSync stops the reconcile while a cache is being filled for the first time: a moment later all is known.
func (r *Reconciler) awaitSync(_ context.Context, s *scope) outcome.Outcome {
	if s.syncing {
		return outcome.Wait()
	}
	return outcome.Continue()
}

// readTemplate reads one template and makes the Cluster its owner, so that it goes with the Cluster. It returns
// nil and records the blocker when there is none.
func (r *Reconciler) readTemplate(
	ctx context.Context,
	s *scope,
	ref clusterv1.ContractVersionedObjectReference,
) (*unstructured.Unstructured, error) {
	found, err := r.kinds.Get(ctx, ref, s.Object.Namespace, s.Request())
	if err != nil {
		return nil, s.awaited(err, ref)
	}
	if err := r.ownTemplate(ctx, s, found.Unstructured); err != nil {
		return nil, err
	}
	// Before any Machine is created for it that could never be completed.
	if _, err := template.Clone(found.Unstructured, template.Options{}); err != nil {
		return nil, s.awaited(err, ref)
	}
	return found.Unstructured, nil
}

// awaited records as a blocker what ends with an event, and passes on all other errors.
func (s *scope) awaited(err error, ref clusterv1.ContractVersionedObjectReference) error {
	why, err := s.expected(err, ref, "the reference in spec.template.spec")
	if why != "" {
		s.block(why)
	}
	return err
}

// expected describes why an object cannot be read, if an event will end that, and passes on all other errors.
// where is what to correct if there is no such object.
func (s *scope) expected(err error, ref clusterv1.ContractVersionedObjectReference, where string) (why string, unexpected error) {
	var noCRD *version.NoCRDError
	var noContract *version.NoContractError
	var notSynced *external.NotSyncedError
	var shape *template.ShapeError
	switch {
	case errors.As(err, &notSynced) && !notSynced.Overdue:
		s.syncing = true
		return "", nil
	case errors.As(err, &noCRD), errors.As(err, &noContract), errors.As(err, &notSynced), errors.As(err, &shape), external.NotServed(err):
		return err.Error(), nil
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%s %s/%s does not exist: create it, or correct %s", ref.Kind, s.Object.Namespace, ref.Name, where), nil
	}
	return "", err
}

// ownTemplate makes the Cluster an owner of a template; once, for all sets that use it.
func (r *Reconciler) ownTemplate(ctx context.Context, s *scope, from *unstructured.Unstructured) error {
	if !from.GetDeletionTimestamp().IsZero() {
		return nil
	}
	owners, wait := machines.OwnedByCluster(ctx, r.APIReader, from.GetOwnerReferences(), s.cluster)
	switch {
	case wait.Err() != nil:
		return wait.Err()
	case !wait.Finished():
		return apierrors.NewConflict(clusterv1.GroupVersion.WithResource("clusters").GroupResource(), s.cluster.Name,
			errors.New("the cache has a Cluster that no longer exists"))
	case equality.Semantic.DeepEqual(owners, from.GetOwnerReferences()):
		return nil
	}
	before := from.DeepCopy()
	from.SetOwnerReferences(owners)
	err := r.Client.Patch(ctx, from, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return errors.Wrapf(err, "making Cluster %s an owner of %s %s", s.cluster.Name, from.GetKind(), from.GetName())
}
