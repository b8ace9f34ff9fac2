package inframachine

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// checkIdentity ends the work on an object that may not use the identity that it names: nothing is called in the cloud for it, not even
// a list or a termination, and what was requested and not sent is withdrawn. Watches bring it back.
func (r *Reconciler[M]) checkIdentity(ctx context.Context, s *scope[M]) outcome.Outcome {
	refusal, err := r.refusal(ctx, s.Object)
	if err != nil {
		return outcome.FromError(err)
	}
	if refusal == nil {
		return outcome.Continue()
	}
	r.leaveCloud(s.Key())
	s.observed.refused = &explanation{refusal.Reason, refusal.Message}
	if s.Deleting() || !s.Object.CommonStatus().IsProvisioned() {
		s.observed.state = s.observed.refused
	}
	return outcome.Wait()
}

// refusal is why nothing may be called for the object; nil if it may.
func (r *Reconciler[M]) refusal(ctx context.Context, obj M) (*identity.Refusal, error) {
	return r.Identities.Check(ctx, obj, controllerutil.ContainsFinalizer(obj, Finalizer))
}

// leaveCloud ends all calls for an object that continues to exist.
func (r *Reconciler[M]) leaveCloud(key client.ObjectKey) {
	r.inventory.Forget(key)
	r.limiter.Forget(key)
	r.withdraw(key)
}

// mayNotCall returns whether nothing may be called for the object, or whether that is not known.
func (r *Reconciler[M]) mayNotCall(ctx context.Context, obj M) bool {
	refusal, err := r.refusal(ctx, obj)
	return err != nil || refusal != nil
}

// users are the objects of the kind, as those who name identities.
func (r *Reconciler[M]) users() identity.Users {
	return identity.Users{Reader: r.Client, New: func() client.Object { return r.New() }, NewList: r.NewList}
}

// leaveCloudIfRefused keeps an object that is paused from being listed with an identity that it may not use any more.
func (r *Reconciler[M]) leaveCloudIfRefused(ctx context.Context, obj M) {
	refusal, err := r.refusal(ctx, obj)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Checking the identity of a paused machine failed")
	}
	if err != nil || refusal != nil {
		r.leaveCloud(client.ObjectKeyFromObject(obj))
	}
}

// addRefusal adds an event if the status reports for the first time that the identity may not be used.
func (s *scope[M]) addRefusal(before *driverv1.MachineStatus) {
	why := s.observed.refused
	if why == nil || reports(before, driverv1.ReadyCondition, why.reason) || reports(before, driverv1.CloudReachableCondition, why.reason) {
		return
	}
	s.events.Warning(identityRefusedEvent, "CheckIdentity", "%s", why.message)
}
