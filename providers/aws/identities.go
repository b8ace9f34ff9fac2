package main

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/events"
	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/session"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/identity/controller"
	"millwright.dev/providers/driver/manager"
)

// identityKind is the kind of the provider's identities.
const identityKind = "AWSIdentity"

// newSessions returns what is made of the credentials of AWSIdentities.
func newSessions(mgr ctrl.Manager, options *manager.Options, clk clock.PassiveClock, load session.Load) *session.Sessions {
	return session.NewSessions(mgr.GetClient(), mgr.GetAPIReader(), clk, session.Options{
		Load: load, TokenDirectories: options.Identities.TokenDirectories, Timeout: options.CloudTimeout / 2, Namespace: options.OwnNamespace(),
	})
}

// newGuard decides who may use them.
func newGuard(mgr ctrl.Manager, options *manager.Options) *identity.Guard {
	return options.Guard(mgr.GetClient(), identityKind, func() identity.Object { return &infrav1.AWSIdentity{} })
}

func newIdentityReconciler(
	mgr ctrl.Manager, options *manager.Options, clk clock.PassiveClock, sessions *session.Sessions, own *ownAccount,
) *controller.Reconciler[*infrav1.AWSIdentity] {
	return &controller.Reconciler[*infrav1.AWSIdentity]{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Recorder:  events.For(mgr, name),
		Clock:     clk,
		Kind:      identityKind,
		New:       func() *infrav1.AWSIdentity { return &infrav1.AWSIdentity{} },
		Machines: identity.Users{
			Reader:  mgr.GetClient(),
			New:     func() client.Object { return &infrav1.AWSMachine{} },
			NewList: func() client.ObjectList { return &infrav1.AWSMachineList{} },
		},
		Open: func(ctx context.Context, id *infrav1.AWSIdentity) (controller.Verifier, error) {
			opened, err := sessions.Get(ctx, id.Name)
			if err != nil {
				return nil, err
			}
			if !options.Identities.Required {
				own.learn(ctx)
			}
			return opened, nil
		},
		CallTimeout: options.CloudTimeout,
		WatchFilter: options.WatchFilter,
		Unused:      options.Identities.Unused,
	}
}
