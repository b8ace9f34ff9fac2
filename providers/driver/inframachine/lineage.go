package inframachine

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/limit"
	"millwright.dev/providers/driver/orphans"
)

// lineage returns the mark of the installation for a launch. Without one the instance is launched all the same, since machines matter
// more: should its object be removed by force, it is not ended before it has been marked. wait is for how long the record of the
// installation is still awaited.
func (r *Reconciler[M]) lineage(ctx context.Context, s *scope[M]) (lineage string, wait time.Duration) {
	if r.marks == nil {
		return "", 0
	}
	if wait := r.marks.Settling(); wait > 0 {
		return "", min(wait, rereadDelay)
	}
	lineage, err := r.marks.Mark(s.cluster.UID, s.handle.Scope)
	if err != nil {
		orphans.Unmarked(r.Kind)
		ctrl.LoggerFrom(ctx).Error(err, "The instance is launched without a lineage: it is not collected should the object be removed by force")
		s.events.Warning(unmarkedEvent, "Launch", "The instance is launched without a lineage, and not collected should this object "+
			"be removed by force, until it has one: %v", err)
	}
	return lineage, 0
}

// collector makes the collector of orphans, and the store from which launches have their marks.
func (r *Reconciler[M]) collector() *orphans.Collector {
	r.marks = orphans.NewStore(r.Client, r.APIReader, r.Clock, r.Options.Orphans.Record)
	return &orphans.Collector{
		Kind:            r.Kind,
		APIReader:       r.APIReader,
		Recorder:        r.Recorder,
		Clock:           r.Clock,
		Cloud:           r.cloud,
		Remarker:        limit.Remarker(r.Driver, r.limiter),
		Leftovers:       limit.LeftoverLister(r.Driver, r.limiter),
		NewList:         r.NewList,
		Claim:           r.claim,
		MayUse:          r.mayUse,
		Tracked:         r.inventory.Scopes,
		VisibilityGrace: r.Options.VisibilityGrace,
		CallTimeout:     r.Options.CallTimeout,
		Store:           r.marks,
		Options:         r.Options.Orphans,
	}
}

// claim is what an object claims of the cloud. A record that cannot be read claims nothing; the object's name does.
func (r *Reconciler[M]) claim(ctx context.Context, listed client.Object) orphans.Claim {
	claim := orphans.Claim{
		UID: listed.GetUID(), Namespace: listed.GetNamespace(), Cluster: listed.GetLabels()[clusterv1.ClusterNameLabel],
		Settled: predicates.MatchesWatchLabel(r.Options.WatchFilter, listed) && len(paused.By(listed, nil)) == 0 &&
			listed.GetDeletionTimestamp().IsZero(),
	}
	if obj, ok := listed.(M); ok {
		launched, err := readRecord(obj)
		claim.Handle = r.handleOf(obj, launched, err)
		claim.Allowed = !r.mayNotCall(ctx, obj)
	}
	return claim
}

// mayUse returns whether the identity of a scope may be used for a namespace or, if that is empty, for any namespace with a Cluster.
func (r *Reconciler[M]) mayUse(ctx context.Context, in driver.Scope, namespace string) bool {
	if r.Identities == nil {
		return true
	}
	namespaces := []string{namespace}
	if namespace == "" {
		clusters := &clusterv1.ClusterList{}
		if err := r.Client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing Clusters in the cache failed")
			return false
		}
		namespaces = namespaces[:0]
		for i := range clusters.Items {
			namespaces = append(namespaces, clusters.Items[i].Namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.ContainsFunc(slices.Compact(namespaces), func(namespace string) bool {
		use := &identityUse{identity: in.Identity}
		use.Namespace = namespace
		refusal, err := r.Identities.Check(ctx, use, true)
		return err == nil && refusal == nil
	})
}

// identityUse asks the guard of identities in the name of a namespace.
type identityUse struct {
	metav1.PartialObjectMetadata

	identity string
}

// IdentityName implements identity.User.
func (u *identityUse) IdentityName() string { return u.identity }
