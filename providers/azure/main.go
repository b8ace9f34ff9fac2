// The Azure provider: manages virtual machines for Machines. Flags and wiring only.
package main

import (
	"cmp"
	"context"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/events"
	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/instance"
	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/providers/driver/limit"
	"millwright.dev/providers/driver/machinetemplate"
	"millwright.dev/providers/driver/manager"
)

// name of the provider: of its lease, its user agent and its objects.
const name = "millwright-azure"

// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=azuremachines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=azuremachines/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=azuremachinetemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=azuremachinetemplates/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=azureidentities,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=azureidentities/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

func main() {
	options := newOptions()
	azure := &session.Options{}
	program := options.Program("manages Azure virtual machines for Machines", func(ctx context.Context) error {
		return run(ctx, options, azure.Config)
	})
	addFlags, complete := program.AddFlags, program.Complete
	program.AddFlags = func(fs *pflag.FlagSet) {
		addFlags(fs)
		azure.AddFlags(fs)
	}
	program.Complete = func() error { return cmp.Or(complete(), azure.Validate()) }
	program.Main()
}

func newOptions() *manager.Options {
	options := manager.NewOptions(name, instance.Traits())
	options.Identities = &manager.IdentityOptions{TokenDirectories: []string{"/var/run/secrets"}}
	return options
}

func run(ctx context.Context, options *manager.Options, configure func() (session.Config, error)) error {
	config, err := configure()
	if err != nil {
		return err
	}
	return manager.Run(ctx, options, infrav1.AddToScheme, func(mgr ctrl.Manager) error {
		sessions := newSessions(mgr, options, clock.RealClock{}, config)
		machines := instance.New(config, clock.RealClock{}).WithIdentities(sessions)
		reconciler := newMachineReconciler(mgr, options, clock.RealClock{}, machines)
		if err := reconciler.SetupWithManager(mgr); err != nil {
			return err
		}
		if err := newIdentityReconciler(mgr, options, clock.RealClock{}, sessions).SetupWithManager(mgr); err != nil {
			return err
		}
		return newTemplateReconciler(mgr, options, clock.RealClock{}, machines, reconciler.Limiter()).SetupWithManager(mgr)
	})
}

func newMachineReconciler(
	mgr ctrl.Manager, options *manager.Options, clk clock.WithTicker, azure *instance.Driver,
) *inframachine.Reconciler[*infrav1.AzureMachine] {
	return &inframachine.Reconciler[*infrav1.AzureMachine]{
		Client:     mgr.GetClient(),
		APIReader:  mgr.GetAPIReader(),
		Recorder:   events.For(mgr, name),
		Clock:      clk,
		Driver:     azure,
		Kind:       "AzureMachine",
		Identities: newGuard(mgr, options),
		New:        func() *infrav1.AzureMachine { return &infrav1.AzureMachine{} },
		NewList:    func() client.ObjectList { return &infrav1.AzureMachineList{} },
		Options:    options.Machine(),
	}
}

func newTemplateReconciler(
	mgr ctrl.Manager, options *manager.Options, clk clock.PassiveClock, azure *instance.Driver, limiter *limit.Limiter,
) *machinetemplate.Reconciler[*infrav1.AzureMachineTemplate] {
	return &machinetemplate.Reconciler[*infrav1.AzureMachineTemplate]{
		Client:      mgr.GetClient(),
		Sizer:       azure,
		Limiter:     limiter,
		LimitScope:  func(t *infrav1.AzureMachineTemplate) string { return azure.LimitScope(instance.TemplateScope(t)) },
		Clock:       clk,
		Kind:        "AzureMachineTemplate",
		New:         func() *infrav1.AzureMachineTemplate { return &infrav1.AzureMachineTemplate{} },
		NewList:     func() client.ObjectList { return &infrav1.AzureMachineTemplateList{} },
		Identities:  newGuard(mgr, options),
		CallTimeout: options.CloudTimeout,
		WatchFilter: options.WatchFilter,
	}
}
