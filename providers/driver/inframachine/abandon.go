package inframachine

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/providers/driver"
)

// terminateIfAbandoned terminates an instance that no object refers to: while it was launched, a user removed the finalizer and
// the object was removed. writeErr is why its provider ID could not be recorded. An object that has been moved to another management
// cluster is removed here as well and takes its record along, so the instance stays unless the Cluster is here and not paused.
func (r *Reconciler[M]) terminateIfAbandoned(ctx context.Context, s *scope[M], instance driver.Instance, writeErr error) {
	if !apierrors.IsNotFound(writeErr) && !persist.LostRace(writeErr) {
		return
	}
	latest := r.New()
	err := r.APIReader.Get(ctx, s.Key(), latest)
	if client.IgnoreNotFound(err) != nil || err == nil && latest.GetUID() == s.Object.GetUID() {
		return
	}
	log := ctrl.LoggerFrom(ctx).WithValues("providerID", instance.ProviderID)
	cluster := &clusterv1.Cluster{}
	err = r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.Key().Namespace, Name: s.clusterName}, cluster)
	if err != nil || len(paused.By(latest, cluster)) > 0 {
		log.Info("The object was removed while its instance was launched. The instance is left running, since the object may have been moved")
		s.events.Warning(
			abandonedEvent,
			"Launch",
			"The object was removed while instance %s was launched; terminate it by hand unless the object was moved",
			instance.ID,
		)
		s.events.Record(r.Recorder, s.Object)
		return
	}
	handle := s.handle
	handle.ProviderID = instance.ProviderID
	if err := r.endInstances(ctx, handle.Scope, []driver.Handle{handle})[0]; err != nil {
		log.Error(err, "Terminating an instance failed whose object was removed while it was launched; terminate it by hand")
		s.events.Warning(
			abandonedEvent,
			"Launch",
			"The object was removed while instance %s was launched, and terminating it failed; terminate it by hand: %v",
			instance.ID,
			err,
		)
	} else {
		s.events.Warning(
			abandonedEvent,
			"Launch",
			"The object was removed while instance %s was launched; the instance is terminated",
			instance.ID,
		)
	}
	s.events.Record(r.Recorder, s.Object)
}
