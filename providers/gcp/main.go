// The GCP provider: keeps Compute Engine instances for Machines. Flags and wiring only.
package main

import (
	"context"
	"net/http"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

func main() {
	options, endpoint := manager.NewOptions(name, instance.Traits()), ""
	program := options.Program("keeps Compute Engine instances for Machines", func(ctx context.Context) error {
		return run(ctx, options, endpoint)
	})
	addFlags, complete := program.AddFlags, program.Complete
	program.AddFlags = func(fs *pflag.FlagSet) {
		addFlags(fs)
		fs.StringVar(&endpoint, "compute-endpoint", instance.DefaultEndpoint, "URL of the Compute Engine API.")
	}
	program.Complete = func() error {
		if !strings.HasPrefix(endpoint, "https://") && !strings.HasPrefix(endpoint, "http://") {
			return errors.Errorf("--compute-endpoint is %q: give a URL, such as %s", endpoint, instance.DefaultEndpoint)
		}
		return complete()
	}
	program.Main()
}

func run(ctx context.Context, options *manager.Options, endpoint string) error {
	return manager.Run(ctx, options, infrav1.AddToScheme, func(mgr ctrl.Manager) error {
		transport := http.DefaultTransport
		cloud := instance.New(strings.TrimSuffix(endpoint, "/"), transport, credentials.Default(transport).Token)
		machines := &inframachine.Reconciler[*infrav1.GCPMachine]{
			Client:    mgr.GetClient(),
			APIReader: mgr.GetAPIReader(),
			Recorder:  mgr.GetEventRecorder(name),
			Clock:     clock.RealClock{},
			Driver:    cloud,
			Kind:      "GCPMachine",
			New:       func() *infrav1.GCPMachine { return &infrav1.GCPMachine{} },
			NewList:   func() client.ObjectList { return &infrav1.GCPMachineList{} },
			Options:   options.Machine(),
		}
		if err := machines.SetupWithManager(mgr); err != nil {
			return err
		}
		templates := &machinetemplate.Reconciler[*infrav1.GCPMachineTemplate]{
			Client:      mgr.GetClient(),
			Sizer:       cloud,
			Clock:       clock.RealClock{},
			Kind:        "GCPMachineTemplate",
			New:         func() *infrav1.GCPMachineTemplate { return &infrav1.GCPMachineTemplate{} },
			NewList:     func() client.ObjectList { return &infrav1.GCPMachineTemplateList{} },
			CallTimeout: options.CloudTimeout,
			WatchFilter: options.WatchFilter,
		}
		return templates.SetupWithManager(mgr)
	})
}
