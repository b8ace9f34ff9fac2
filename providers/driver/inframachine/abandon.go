package inframachine

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
)

// endIfAbandoned ends an instance that no object will ever speak of: while it was launched, somebody removed the finalizer and
// the object went. writeErr is why its provider ID could not be recorded. An object that has been moved to another management
// cluster goes here as well and takes its record along, so the instance stays unless the Cluster is here and not paused.
func (r *Reconciler[M]) endIfAbandoned(ctx context.Context, s *scope[M], instance driver.Instance, writeErr error) {
	if !apierrors.IsNotFound(writeErr) && !apierrors.IsConflict(writeErr) {
		return
	}
	latest := r.New()
	err := r.APIReader.Get(ctx, s.key, latest)
	if client.IgnoreNotFound(err) != nil || err == nil && latest.GetUID() == s.obj.GetUID() {
		return
	}
	log := ctrl.LoggerFrom(ctx).WithValues("providerID", instance.ProviderID)
	cluster := &clusterv1.Cluster{}
	err = r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.key.Namespace, Name: s.clusterName}, cluster)
	if err != nil || isPaused(latest, cluster) {
		log.Info("The object went while its instance was launched. The instance is left running, since the object may have been moved")
		s.announceWarning(eventAbandoned, "Launch", "The object went while instance %s was launched; end it by hand unless the object was moved", instance.ID)
		r.publish(s)
		return
	}
	handle := s.handle
	handle.ProviderID = instance.ProviderID
	if err := r.deleteInstances(ctx, handle.Scope, []driver.Handle{handle})[0]; err != nil {
		log.Error(err, "Ending an instance failed whose object went while it was launched; end it by hand")
		s.announceWarning(eventAbandoned, "Launch", "The object went while instance %s was launched, and ending it failed; end it by hand: %v", instance.ID, err)
	} else {
		s.announceWarning(eventAbandoned, "Launch", "The object went while instance %s was launched; the instance is ended", instance.ID)
	}
	r.publish(s)
}
