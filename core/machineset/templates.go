package machineset

import (
	"context"
	"fmt"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/core/outcome"
)

// readTemplates reads what Machines are made from. One that is missing is an obstacle to new Machines only:
// deleting and updating goes on. It is waited for by a watch.
func (r *Reconciler) readTemplates(ctx context.Context, s *scope) outcome.Outcome {
	spec := &s.set.Spec.Template.Spec
	infrastructure, err := r.readTemplate(ctx, s, spec.InfrastructureRef)
	if err != nil {
		return outcome.Fail(err)
	}
	s.infrastructure = infrastructure
	if !spec.Bootstrap.ConfigRef.IsDefined() {
		return outcome.Continue()
	}
	s.bootstrap, err = r.readTemplate(ctx, s, spec.Bootstrap.ConfigRef)
	return outcome.Fail(err)
}

// readTemplate reads one template and makes the Cluster its owner, so that it goes with the Cluster. It returns
// nil and notes the obstacle when there is none.
func (r *Reconciler) readTemplate(ctx context.Context, s *scope, ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
	resolved, err := r.Resolver.Resolve(ctx, schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	var noCRD *version.NoCRDError
	var noContract *version.NoContractError
	switch {
	case errors.As(err, &noCRD), errors.As(err, &noContract):
		s.obstacles = append(s.obstacles, err.Error())
		return nil, nil
	case err != nil:
		return nil, err
	}
	if err := r.providers.watchTemplates(resolved.GVK); err != nil {
		return nil, err
	}
	key := client.ObjectKey{Namespace: s.set.Namespace, Name: ref.Name}
	template, err := r.providers.get(ctx, resolved.GVK, key)
	if err != nil {
		return nil, err
	}
	if template == nil {
		s.obstacles = append(s.obstacles, fmt.Sprintf(
			"%s %s does not exist: create it, or correct the reference in spec.template.spec", ref.Kind, key))
		return nil, nil
	}
	return template, r.ownTemplate(ctx, s, template)
}

// ownTemplate makes the Cluster an owner of a template; once, for all sets that use it.
func (r *Reconciler) ownTemplate(ctx context.Context, s *scope, template *unstructured.Unstructured) error {
	if !template.GetDeletionTimestamp().IsZero() {
		return nil
	}
	owners := withOwner(template.GetOwnerReferences(), clusterReference(s.cluster))
	if equality.Semantic.DeepEqual(owners, template.GetOwnerReferences()) {
		return nil
	}
	before := template.DeepCopy()
	template.SetOwnerReferences(owners)
	err := r.Client.Patch(ctx, template, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return errors.Wrapf(err, "making Cluster %s an owner of %s %s", s.cluster.Name, template.GetKind(), template.GetName())
}
