package main

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/events"
	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/identity/controller"
	"millwright.dev/providers/driver/manager"
)

// identityKind is the kind of the provider's identities.
const identityKind = "AzureIdentity"

// newSessions returns what is made of the credentials of AzureIdentities.
func newSessions(mgr ctrl.Manager, options *manager.Options, clk clock.PassiveClock, config session.Config) *session.Sessions {
	return session.NewSessions(mgr.GetClient(), mgr.GetAPIReader(), clk, session.Sources{
		Config: config, TokenDirectories: options.Identities.TokenDirectories, Timeout: options.CloudTimeout / 2,
		Namespace: options.OwnNamespace(),
	})
}

// newGuard decides who may use them.
func newGuard(mgr ctrl.Manager, options *manager.Options) *identity.Guard {
	return options.Guard(mgr.GetClient(), identityKind, func() identity.Object { return &infrav1.AzureIdentity{} })
}

func newIdentityReconciler(
	mgr ctrl.Manager, options *manager.Options, clk clock.PassiveClock, sessions *session.Sessions,
) *controller.Reconciler[*infrav1.AzureIdentity] {
	return &controller.Reconciler[*infrav1.AzureIdentity]{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Recorder:  events.For(mgr, name),
		Clock:     clk,
		Kind:      identityKind,
		New:       func() *infrav1.AzureIdentity { return &infrav1.AzureIdentity{} },
		Machines: identity.Users{
			Reader:  mgr.GetClient(),
			New:     func() client.Object { return &infrav1.AzureMachine{} },
			NewList: func() client.ObjectList { return &infrav1.AzureMachineList{} },
		},
		Open: func(ctx context.Context, id *infrav1.AzureIdentity) (controller.Verifier, error) {
			opened, err := sessions.Get(ctx, id.Name)
			if err != nil {
				return nil, err
			}
			return opened, nil
		},
		CallTimeout: options.CloudTimeout,
		WatchFilter: options.WatchFilter,
		Unused:      options.Identities.Unused,
	}
}
