package orphans

import (
	"context"
	"slices"

	"github.com/pkg/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/providers/driver"
)

// candidate is something that is to be deleted.
type candidate struct {
	Found

	seen    Observation
	cluster Cluster
	// tried is true if it should have ended before.
	tried bool
}

// ofDeletion returns whether it is what became of a deletion: the class of a failure, or that the cloud has agreed.
func (v Assessment) ofDeletion() bool {
	return v == Orphan || v != "" && !slices.Contains(allAssessments, v)
}

// untriedFirst is the order in which the budget is spent: what the cloud refuses to delete must not hold up the rest for ever.
func untriedFirst(a, b *candidate) int {
	switch {
	case a.tried == b.tried:
		return 0
	case b.tried:
		return -1
	}
	return 1
}

// handle leads to it, and to nothing else. Its owner is that of the mark.
func (d *candidate) handle(in driver.Scope) driver.Handle {
	return driver.Handle{
		Scope: in, Ending: true, ProviderID: d.ProviderID, Token: d.Token, Name: d.Name, OwnerUID: d.OwnerUID, Owner: d.Owner,
		Placement: driver.Placement{FailureDomain: d.FailureDomain, InstanceType: d.InstanceType, Market: d.Market},
	}
}

// collect deletes the orphans of a scope. Right before, everything that they are orphans by is read once more: the objects and the
// Clusters from the API server, state and marks from the cloud itself.
func (c *Collector) collect(ctx context.Context, before *World, l *list, due []*candidate, budget *budget) {
	if len(due) == 0 {
		return
	}
	fresh, err := c.read(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "No orphan is deleted, since what claims them could not be read again")
		return
	}
	fresh.persisted(before.Record)
	fresh.Claims.instances = before.Claims.instances
	waiting, spared := 0, l.spared(due)
	slices.SortStableFunc(due, untriedFirst)
	due = slices.DeleteFunc(due, func(d *candidate) bool {
		if lineage, ok := driver.ParseLineage(d.Lineage); ok {
			d.cluster = fresh.Clusters[lineage.Cluster]
		}
		switch {
		case Decide(fresh, d.Found, d.seen) != Orphan, d.Kind != kindInstance && spared[d.owner()]:
			return true
		case !budget.take(d.cluster.UID):
			waiting++
			return true
		}
		return false
	})
	if waiting > 0 {
		ctrl.LoggerFrom(ctx).Info("More orphans than one scan deletes: the others follow", "deleting", len(due), "waiting", waiting)
	}
	instances := slices.DeleteFunc(slices.Clone(due), func(d *candidate) bool { return d.Kind != kindInstance })
	leftovers := slices.DeleteFunc(slices.Clone(due), func(d *candidate) bool { return d.Kind == kindInstance })
	for batch := range slices.Chunk(instances, c.batchSize()) {
		c.deleteBatch(ctx, fresh, l.scope, batch)
	}
	for batch := range slices.Chunk(leftovers, c.batchSize()) {
		if c.outdated(ctx, fresh) {
			return
		}
		c.cleanUp(ctx, l.scope, batch)
	}
}

func (c *Collector) batchSize() int { return max(1, c.Cloud.Traits().WithDefaults().BatchSize) }

// deleteBatch asks the cloud for each of them, and then for the end of those that are as they were listed.
func (c *Collector) deleteBatch(ctx context.Context, w *World, in driver.Scope, batch []*candidate) {
	handles := make([]driver.Handle, 0, len(batch))
	for _, d := range batch {
		handles = append(handles, d.handle(in))
	}
	var verified []*candidate
	var ending []driver.Handle
	for i, answer := range c.observe(ctx, in, handles) {
		d := batch[i]
		switch {
		case driver.IsNotFound(answer.Err):
		case answer.Err != nil:
			c.failed(ctx, in, d, answer.Err)
		case answer.Value.ProviderID != d.ProviderID:
			ctrl.LoggerFrom(ctx).Info("The cloud answers with another instance than it lists; nothing is deleted", "providerID", d.ProviderID)
		case Decide(w, Found{Kind: d.Kind, Scope: in, Instance: answer.Value}, d.seen) != Orphan, !handles[i].Owns(answer.Value):
		default:
			handles[i].Incarnation = answer.Value.Incarnation
			verified, ending = append(verified, d), append(ending, handles[i])
		}
	}
	if len(ending) == 0 || ctx.Err() != nil || c.outdated(ctx, w) {
		return
	}
	for i, err := range c.delete(ctx, in, ending) {
		switch {
		case driver.IsNotFound(err):
		case err != nil:
			c.failed(ctx, in, verified[i], err)
		default:
			c.deleted(ctx, in, verified[i])
		}
	}
}

// outdated returns whether what was read of the API server is too old to end anything by. A process that was stopped in between, with its
// machine perhaps, may have lost its lease without knowing it yet.
func (c *Collector) outdated(ctx context.Context, w *World) bool {
	age := c.Clock.Now().Sub(w.Now)
	if age <= w.Grace {
		return false
	}
	ctrl.LoggerFrom(ctx).Info("Nothing more is deleted in this scan, since what claims orphans was read too long ago", "age", age.String())
	return true
}

func (c *Collector) observe(ctx context.Context, in driver.Scope, handles []driver.Handle) (answers []driver.Answer[driver.Instance]) {
	ctx, cancel := context.WithTimeout(ctx, c.CallTimeout)
	defer cancel()
	err := driver.Recover(ctx, "Observe", func() error {
		answers = c.Cloud.Observe(ctx, in, handles)
		return nil
	})
	if err != nil || len(answers) != len(handles) {
		return driver.Failed[driver.Instance](len(handles), errors.New("the driver gave no answer"))
	}
	return answers
}

func (c *Collector) delete(ctx context.Context, in driver.Scope, handles []driver.Handle) (errs []error) {
	ctx, cancel := context.WithTimeout(ctx, c.CallTimeout)
	defer cancel()
	err := driver.Recover(ctx, "Delete", func() error {
		errs = c.Cloud.Delete(ctx, in, handles)
		return nil
	})
	if err != nil || len(errs) != len(handles) {
		return slices.Repeat([]error{errors.New("the driver gave no answer")}, len(handles))
	}
	return errs
}
