// The core manager: it reconciles Clusters, Machines, MachineSets and MachineDeployments of the Cluster API,
// and knows no cloud. See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	goruntime "runtime"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	logsv1 "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/util/apiwarnings"
	ctrl "sigs.k8s.io/controller-runtime"
)

// name is how the core calls itself to API servers.
const name = "millwright-core"

// The diagnostics endpoint asks the API server who may read it.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

func main() {
	o := newOptions()
	err := o.parse(pflag.CommandLine, os.Args[1:])
	if err == nil {
		err = errors.Wrap(logsv1.ValidateAndApply(o.log, nil), "applying the flags of the log")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		klog.ErrorS(err, "The core ends")
		klog.Flush()
		os.Exit(1)
	}
	klog.Flush()
}

// parse reads the command line.
func (o *options) parse(flags *pflag.FlagSet, arguments []string) error {
	o.addFlags(flags)
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	flags.AddGoFlagSet(flag.CommandLine)
	if err := flags.Set("v", "2"); err != nil {
		return errors.Wrap(err, "setting the default log level")
	}
	if err := flags.Parse(arguments); err != nil {
		return errors.Wrap(err, "reading the command line")
	}
	return o.complete()
}

// run runs the core until the context ends.
func run(ctx context.Context, o *options) error {
	if o.contentionProfiling {
		goruntime.SetBlockProfileRate(1)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return errors.Wrap(err, "finding the API server: set --kubeconfig, or run in a cluster")
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.UserAgent = o.kubeAPIQPS, o.kubeAPIBurst, name
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
