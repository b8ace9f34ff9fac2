// The core manager: it reconciles Clusters, Machines, MachineSets and MachineDeployments of the Cluster API,
// and knows no cloud. See README.md.
package main

import (
	"context"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

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
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	if err := addControllers(ctx, mgr, o); err != nil {
		return err
	}
	return errors.Wrap(mgr.Start(ctx), "running the manager")
}
