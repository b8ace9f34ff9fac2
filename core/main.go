// The core manager: it reconciles Clusters, Machines, MachineSets and MachineDeployments of the Cluster API,
// and knows no cloud. See README.md.
package main

import (
	"context"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/util/apiwarnings"

	"millwright.dev/contracts/controller/manager"
)

// name is how the core calls itself to API servers.
const name = "millwright-core"

// The diagnostics endpoint asks the API server who may read it.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

func main() { newOptions().program().Main() }

func (o *options) program() manager.Program {
	return manager.Program{
		Summary: "reconciles Clusters, MachineDeployments, MachineSets and Machines", Options: o.Options,
		AddFlags: o.addFlags, Complete: o.complete,
		Run: func(ctx context.Context) error { return run(ctx, o) },
	}
}

// parse reads the command line.
func (o *options) parse(flags *pflag.FlagSet, arguments []string) error {
	return o.program().Parse(flags, arguments)
}

// run runs the core until the context ends.
func run(ctx context.Context, o *options) error {
	config, err := o.RESTConfig()
	if err != nil {
		return err
	}
	config.WarningHandlerWithContext = warnings{apiwarnings.DefaultHandler(klog.Background().WithName("API server warning"))}
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	if err := addControllers(ctx, mgr, o); err != nil {
		return err
	}
	return errors.Wrap(mgr.Start(ctx), "running the manager")
}

// warnings adapts a warning handler.
type warnings struct{ rest.WarningHandler }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, code int, agent, text string) {
	w.HandleWarningHeader(code, agent, text)
}
