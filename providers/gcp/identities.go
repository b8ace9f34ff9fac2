package main

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/identity/controller"
	"millwright.dev/providers/driver/manager"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/credentials"
)

// identityKind is the kind of the provider's identities.
const identityKind = "GCPIdentity"

// newGuard decides who may use them.
func newGuard(mgr ctrl.Manager, options *manager.Options) *identity.Guard {
	return options.Guard(mgr.GetClient(), identityKind, func() identity.Object { return &infrav1.GCPIdentity{} })
}

func newIdentityReconciler(
	mgr ctrl.Manager, options *manager.Options, sessions *credentials.Sessions,
) *controller.Reconciler[*infrav1.GCPIdentity] {
	return &controller.Reconciler[*infrav1.GCPIdentity]{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Recorder:  events.For(mgr, name),
		Clock:     clock.RealClock{},
		Kind:      identityKind,
		New:       func() *infrav1.GCPIdentity { return &infrav1.GCPIdentity{} },
		Machines: identity.Users{
			Reader:  mgr.GetClient(),
			New:     func() client.Object { return &infrav1.GCPMachine{} },
			NewList: func() client.ObjectList { return &infrav1.GCPMachineList{} },
		},
		Open: func(ctx context.Context, id *infrav1.GCPIdentity) (controller.Verifier, error) {
			session, err := sessions.Get(ctx, id.Name)
			if err != nil {
				return nil, err
			}
			return session, nil
		},
		CallTimeout: options.CloudTimeout,
		WatchFilter: options.WatchFilter,
		Unused:      options.Identities.Unused,
	}
}
