package machine

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
)

// addHealth adds the first assessment of the health checks to a status that is written anyway. It is theirs: they write it
// themselves where nothing else is to be written, where the Node is in doubt, and where this write fails.
func (r *Reconciler) addHealth(ctx context.Context, s *scope) {
	if r.AddHealth == nil || s.node == nil || s.nodeErr != nil || s.identity.contested != "" || s.paused() || s.ofAnotherCore() ||
		equality.Semantic.DeepEqual(s.Original.Status, s.Object.Status) {
		return
	}
	if err := r.AddHealth(ctx, s.cluster, s.Object, s.Now); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("The health assessment is not part of this write; the health checks write it themselves",
			"reason", err.Error())
	}
}
