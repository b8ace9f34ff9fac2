package main

import (
	"context"
	"flag"
	"io"
	"os"

	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/core"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/writes"
	"millwright.dev/contracts/rules"
)

// suites are those that need a cluster, by profile.
var suites = map[string]conformance.Suite{
	conformance.InfraMachineProfile.Name:    behaviour.InfraMachine,
	conformance.BootstrapConfigProfile.Name: behaviour.BootstrapConfig,
	conformance.CoreProfile.Name:            core.Suite,
}

// runFlags are the flags of run alone.
type runFlags struct {
	kubeconfig, namespace, timeouts, probe, restart, target string
	samples                                                 list
	parallel                                                int
}

func (f *runFlags) flags(set *flag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "the kubeconfig of the management cluster")
	set.StringVar(&f.namespace, "namespace", "", "the namespace to work in; one is created if omitted")
	set.StringVar(&f.timeouts, "timeouts", "", "a file with the suite's timeouts; defaults if omitted")
	set.IntVar(&f.parallel, "parallel", 0, "how many cases run at once; 8 if it is 0")
	set.Var(&f.samples, "sample",
		"a file with the objects from which the suite creates its own, - for standard input; may be repeated; not for profile core")
	set.StringVar(&f.probe, "probe", "",
		"profile inframachine: a URL that returns the machines of the infrastructure; rules that need it are skipped if omitted")
	set.StringVar(&f.restart, "restart", "",
		"a shell command that kills the provider and starts it again; rules about restarts are skipped if omitted")
	set.StringVar(&f.target, "target-kubeconfig", "",
		"profile core: the kubeconfig with which the core reaches the cluster as its workload cluster; that of --kubeconfig if omitted")
}

// runCluster runs the suite of a profile on a management cluster.
func runCluster(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	set := flag.NewFlagSet("conformance run", flag.ContinueOnError)
	set.SetOutput(stderr)
	o, f := options{}, runFlags{}
	o.flags(set, conformance.InfraMachineProfile.Name)
	f.flags(set)
	if err := parse(set, args); err != nil {
		return exitUsage, err
	}
	selection, err := o.selection()
	if err != nil {
		return exitUsage, err
	}
	suite, found := suites[o.profile]
	if !found {
		return exitUsage, errors.Errorf("--profile: %q has no suite on a cluster: set inframachine, bootstrapconfig or core", o.profile)
	}
	config, settings, err := f.inputs(ctx, o.profile, stdin, stderr)
	if err != nil {
		return exitUsage, err
	}
	settings.Selection = selection
	config = limited(config, requestLimit, writes.Limit)
	if err := permitted(ctx, config, o.profile, settings); err != nil {
		return exitUsage, err
	}
	results, err := suite(ctx, config, settings)
	if err != nil && len(results) == 0 {
		return exitUsage, err
	}
	if err != nil {
		_, _ = io.WriteString(stderr, "conformance: the run ended early: "+err.Error()+"\n")
	}
	early := err != nil || ctx.Err() != nil
	return o.finish(stdout, selection, rules.Behavioural, commandLine("run", set), contractsOf(results), results, early)
}

// connect reads the kubeconfig.
func (f *runFlags) connect(profile string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, errors.Wrap(err, "--kubeconfig")
	}
	if profile == conformance.CoreProfile.Name && f.target == "" && (config.ExecProvider != nil || config.AuthProvider != nil) {
		return nil, errors.New(
			"--target-kubeconfig: set one with a token; --kubeconfig gets its credentials from a program, which no core can run",
		)
	}
	return config, nil
}

// contractsOf returns the versions of the contract in the results.
func contractsOf(results []report.Result) []string {
	var contracts []string
	for _, contract := range []string{rules.V1Beta1, rules.V1Beta2} {
		for _, result := range results {
			if result.ContractVersion == contract {
				contracts = append(contracts, contract)
				break
			}
		}
	}
	return contracts
}
