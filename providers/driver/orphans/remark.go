package orphans

import (
	"context"
	"slices"

	"github.com/pkg/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/providers/driver"
)

// maxRemarks is how many lineages are written in one scan of a scope: after an upgrade all of them are.
const maxRemarks = 1000

// remark writes the lineages of what an object here owns and carries one that proves nothing: after a move, an upgrade, the restore of a
// backup, or a launch right before a start. It takes a verified mark: a claim alone takes nothing over. What cannot be
// written is no worse than it was, and is tried again by the next scan.
func (c *Collector) remark(ctx context.Context, w *World, l *list) {
	if c.Remarker == nil {
		return
	}
	left := maxRemarks
	for cluster, owned := range w.staleOf(l) {
		for batch := range slices.Chunk(owned[:min(len(owned), left)], c.batchSize()) {
			left -= len(batch)
			c.remarkBatch(ctx, l.scope, cluster, batch)
		}
	}
}

// staleOf returns the claims of what has to be marked again, with the provider IDs of the instances, by Cluster.
func (w *World) staleOf(l *list) map[Cluster][]Claim {
	byName := w.clustersByName()
	owned := map[Cluster][]Claim{}
	for _, f := range l.found {
		claim, ok := w.Claims.byOwner[f.Owner]
		if !ok || f.Kind != kindInstance || hasEnded(f.State) || f.ProviderID == "" || claim.Handle.Scope != l.scope || !claim.Settled ||
			!claim.Allowed || !claim.Handle.Owns(f.Instance) {
			continue
		}
		cluster, here := byName[claim.Namespace+"/"+claim.Cluster]
		if here && !cluster.Paused && w.stale(f, cluster) {
			claim.Handle.ProviderID = f.ProviderID
			owned[cluster] = append(owned[cluster], claim)
		}
	}
	return owned
}

// stale returns whether the lineage of what an object of the Cluster owns has to be rewritten.
func (w *World) stale(f Found, cluster Cluster) bool {
	lineage, ok := driver.ParseLineage(f.Lineage)
	if !ok || lineage.Installation != w.Record.Installation || lineage.Cluster != cluster.UID || w.Known[cluster.UID].unproven(lineage.At) {
		return true
	}
	return !w.Record.covers(lineage.At) && !w.Record.awaits(lineage.At, w.Now)
}

// remarkBatch writes one lineage for several instances of a Cluster.
func (c *Collector) remarkBatch(ctx context.Context, in driver.Scope, cluster Cluster, batch []Claim) {
	lineage, err := c.Store.Mark(cluster.UID, in)
	if err != nil || ctx.Err() != nil {
		return
	}
	handles := make([]driver.Handle, 0, len(batch))
	for _, claim := range batch {
		handles = append(handles, claim.Handle)
	}
	ctx, cancel := context.WithTimeout(ctx, c.CallTimeout)
	defer cancel()
	var errs []error
	err = driver.Recover(ctx, "Remark", func() error {
		errs = c.Remarker.Remark(ctx, in, handles, lineage)
		return nil
	})
	if err != nil || len(errs) != len(handles) {
		errs = slices.Repeat([]error{errors.New("the driver gave no answer")}, len(handles))
	}
	for i, err := range errs {
		if err == nil {
			remarked.WithLabelValues(c.Kind, in.String()).Inc()
			continue
		}
		remarkFailures.WithLabelValues(c.Kind, in.String(), string(driver.ClassOf(err))).Inc()
		ctrl.LoggerFrom(ctx).Error(err, "Writing the lineage of an instance failed: it is not collected should its object be removed by force",
			"providerID", handles[i].ProviderID, "owner", handles[i].Owner)
	}
}

// clustersByName are the Clusters by namespace/name.
func (w *World) clustersByName() map[string]Cluster {
	byName := map[string]Cluster{}
	for _, cluster := range w.Clusters {
		byName[cluster.Namespace+"/"+cluster.Name] = cluster
	}
	return byName
}
