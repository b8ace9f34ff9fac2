package inframachine

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/providers/driver/orphans"
)

// lineage returns the mark of the installation for a launch. Without one the instance is launched all the same, since machines matter
// more: should its object be removed by force, it is not ended before it has been marked. wait is for how long the record of lineages
// is still awaited.
func (r *Reconciler[M]) lineage(ctx context.Context, s *scope[M]) (lineage string, wait time.Duration) {
	if r.reign == nil {
		return "", 0
	}
	if wait := r.reign.Settling(); wait > 0 {
		return "", min(wait, rereadDelay)
	}
	lineage, err := r.reign.Mark(s.cluster.UID, s.Object.GetUID(), s.handle.Scope)
	if err != nil {
		orphans.Unmarked(r.Kind)
		ctrl.LoggerFrom(ctx).Error(err, "The instance is launched without a lineage: it is not collected should the object be removed by force")
		s.events.Warning(eventUnmarked, "Launch", "The instance is launched without a lineage, and not collected should this object "+
			"be removed by force, until it has one: %v", err)
	}
	return lineage, 0
}

// released notes that the object was let go by this process.
func (r *Reconciler[M]) released(s *scope[M]) {
	if r.reign != nil {
		r.reign.Released(s.Object.GetUID())
	}
}
