package main

import (
	"context"
	"flag"
	"io"
	"os"

	"github.com/pkg/errors"
	"k8s.io/client-go/tools/clientcmd"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// suites are those that need a cluster, by profile.
var suites = map[string]conformance.Suite{
	conformance.InfraMachineProfile.Name:    behaviour.InfraMachine,
	conformance.BootstrapConfigProfile.Name: behaviour.BootstrapConfig,
}

// runCluster runs the suite of a profile on a management cluster.
func runCluster(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	set := flag.NewFlagSet("conformance run", flag.ContinueOnError)
	set.SetOutput(stderr)
	o := options{}
	o.flags(set, conformance.InfraMachineProfile.Name)
	kubeconfig := set.String("kubeconfig", os.Getenv("KUBECONFIG"), "the kubeconfig of the management cluster")
	namespace := set.String("namespace", "", "the namespace to work in; one is made if it is left out")
	timeouts := set.String("timeouts", "", "a file with the suite's timeouts; defaults if it is left out")
	parallel := set.Int("parallel", 0, "how many cases run at once; 8 if it is 0")
	var samples list
	set.Var(&samples, "sample", "a file with the objects of which the suite makes its own; may be repeated")
	if err := parse(set, args); err != nil {
		return exitUsage, err
	}
	selection, err := o.selection()
	if err != nil {
		return exitUsage, err
	}
	suite, found := suites[o.profile]
	if !found {
		return exitUsage, errors.Errorf("--profile: no suite on a cluster has the profile %q", o.profile)
	}
	settings := conformance.RunOptions{Selection: selection, Namespace: *namespace, Parallel: *parallel, Log: stderr}
	if err := readInputs(&settings, samples, *timeouts); err != nil {
		return exitUsage, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return exitUsage, errors.Wrap(err, "--kubeconfig")
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

func readInputs(settings *conformance.RunOptions, samples []string, timeouts string) error {
	for _, path := range samples {
		data, err := os.ReadFile(path)
		if err != nil {
			return errors.Wrap(err, "--sample")
		}
		settings.Sample = append(append(settings.Sample, "\n---\n"...), data...)
	}
	if timeouts == "" {
		return nil
	}
	data, err := os.ReadFile(timeouts)
	settings.Timeouts = data
	return errors.Wrap(err, "--timeouts")
}

// contractsOf are the versions of the contract that results speak of.
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
