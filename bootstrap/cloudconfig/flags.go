package main

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"millwright.dev/bootstrap/cloudconfig/controller"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/manager"
	"millwright.dev/contracts/remote"
)

// installNamespace is where config/bootstrap/cloudconfig installs the manager.
const installNamespace = "millwright-cloudconfig-system"

// options are the flags.
type options struct {
	*manager.Options

	targetQPS                        float32
	targetBurst                      int
	concurrency, targetConcurrency   int
	cleanupTimeout, joinOverdueAfter time.Duration
	targetNamespace                  string
	targetKubeconfig                 string
}

func newOptions() *options {
	return &options{Options: manager.NewOptions(managerName, installNamespace)}
}

// program is the process of the manager.
func (o *options) program() manager.Program {
	return manager.Program{
		Summary: "creates the user data of Machines, and lets them join their clusters", Options: o.Options,
		AddFlags: o.add, Complete: o.complete,
		Run: func(ctx context.Context) error { return run(ctx, o) },
	}
}

// add adds the manager's own flags. They have the names that Cluster API's managers use where those have them.
func (o *options) add(fs *pflag.FlagSet) {
	fs.StringVar(
		&o.targetKubeconfig,
		"target-kubeconfig",
		"",
		"The kubeconfig file of the one target cluster of all Clusters, or "+remote.InCluster+
			"; when empty, each Cluster has a Secret with its own.",
	)
	fs.Float32Var(&o.targetQPS, "clustercache-client-qps", 100, "Requests per second to each target API server (Cluster API: 20).")
	fs.IntVar(&o.targetBurst, "clustercache-client-burst", 200,
		"Requests to each target API server that may exceed the rate for a moment (Cluster API: 30).")
	fs.IntVar(&o.concurrency, "cloudconfig-concurrency", 20, "CloudConfigs to reconcile at once.")
	fs.IntVar(
		&o.targetConcurrency,
		"clustercache-concurrency",
		100,
		"How many connections to Clusters are begun at once; connecting itself is not limited.",
	)
	fs.DurationVar(
		&o.cleanupTimeout,
		"target-cleanup-timeout",
		5*time.Minute,
		"How long a deleted CloudConfig waits for a target cluster that cannot be reached.",
	)
	fs.DurationVar(
		&o.joinOverdueAfter,
		"join-overdue-after",
		controller.DefaultJoinOverdueAfter,
		"How long a machine may take to join, from its provider ID on, before it is reported as overdue.",
	)
	fs.StringVar(
		&o.targetNamespace,
		"target-namespace",
		nodeaccess.DefaultNamespace,
		"Namespace of target clusters for the Secrets of their nodes. In kube-system the identity in the Cluster's kubeconfig would have to be cluster-admin.",
	)
	fs.Int("webhook-port", 0, "")
	fs.String("webhook-cert-dir", "", "")
	manager.Ignore(fs, "webhook-port", "webhook-cert-dir")
}

func (o *options) complete() error {
	if o.cleanupTimeout < 0 {
		return errors.New("--target-cleanup-timeout must not be negative")
	}
	if o.joinOverdueAfter <= 0 {
		return errors.New("--join-overdue-after must be positive")
	}
	if err := remote.CheckKubeconfig(o.targetKubeconfig); err != nil {
		return errors.Wrap(err, "--target-kubeconfig")
	}
	if invalid := validation.IsDNS1123Label(o.targetNamespace); len(invalid) > 0 {
		return errors.Errorf("--target-namespace: %s", invalid[0])
	}
	return nil
}
