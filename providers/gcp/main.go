// The GCP provider: manages Compute Engine instances for Machines. Flags and wiring only.
package main

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/providers/driver/machinetemplate"
	"millwright.dev/providers/driver/manager"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/credentials"
	"millwright.dev/providers/gcp/instance"
)

// name of the provider: of its lease, its user agent and its objects in config/providers/gcp.
const name = "millwright-gcp"

// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=gcpmachines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=gcpmachines/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=gcpmachinetemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=gcpmachinetemplates/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=gcpidentities,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=gcpidentities/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

func main() {
	options, at := newOptions(), &endpoints{}
	program := options.Program("manages Compute Engine instances for Machines", func(ctx context.Context) error {
		return run(ctx, options, at)
	})
	addFlags, complete := program.AddFlags, program.Complete
	program.AddFlags = func(fs *pflag.FlagSet) {
		addFlags(fs)
		at.addFlags(fs)
	}
	program.Complete = func() error { return cmp.Or(complete(), at.validate()) }
	program.Main()
}

func newOptions() *manager.Options {
	options := manager.NewOptions(name, instance.Traits())
	options.Identities = &manager.IdentityOptions{TokenDirectories: []string{"/var/run/secrets"}}
	return options
}

func run(ctx context.Context, options *manager.Options, at *endpoints) error {
	return manager.Run(ctx, options, infrav1.AddToScheme, func(mgr ctrl.Manager) error { return setup(mgr, options, at) })
}

// setup adds the provider's controllers to a manager.
func setup(mgr ctrl.Manager, options *manager.Options, at *endpoints) error {
	transport := http.DefaultTransport
	sessions := credentials.NewSessions(mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{}, credentials.Options{
		Endpoints: at.tokens, Transport: transport, TokenDirectories: options.Identities.TokenDirectories, Timeout: options.CloudTimeout / 2,
		Namespace: options.OwnNamespace(),
	})
	cloud := instance.New(strings.TrimSuffix(at.compute, "/"), transport, credentials.Own(transport)).WithIdentities(sessions)
	machines := &inframachine.Reconciler[*infrav1.GCPMachine]{
		Client:     mgr.GetClient(),
		APIReader:  mgr.GetAPIReader(),
		Recorder:   events.For(mgr, name),
		Clock:      clock.RealClock{},
		Driver:     cloud,
		Kind:       "GCPMachine",
		Identities: newGuard(mgr, options),
		New:        func() *infrav1.GCPMachine { return &infrav1.GCPMachine{} },
		NewList:    func() client.ObjectList { return &infrav1.GCPMachineList{} },
		Options:    options.Machine(),
	}
	if err := machines.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := newIdentityReconciler(mgr, options, sessions).SetupWithManager(mgr); err != nil {
		return err
	}
	templates := &machinetemplate.Reconciler[*infrav1.GCPMachineTemplate]{
		Client:      mgr.GetClient(),
		Sizer:       cloud,
		Limiter:     machines.Limiter(),
		LimitScope:  func(t *infrav1.GCPMachineTemplate) string { return cloud.LimitScope(instance.TemplateScope(t)) },
		Clock:       clock.RealClock{},
		Kind:        "GCPMachineTemplate",
		New:         func() *infrav1.GCPMachineTemplate { return &infrav1.GCPMachineTemplate{} },
		NewList:     func() client.ObjectList { return &infrav1.GCPMachineTemplateList{} },
		Identities:  newGuard(mgr, options),
		CallTimeout: options.CloudTimeout,
		WatchFilter: options.WatchFilter,
	}
	return templates.SetupWithManager(mgr)
}
