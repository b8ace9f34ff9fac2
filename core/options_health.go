package main

import (
	"github.com/spf13/pflag"
)

// defaultNodeConditions are those of the Machine Controller Manager.
var defaultNodeConditions = []string{"KernelDeadlock", "ReadonlyFilesystem", "DiskPressure", "NetworkUnavailable"}

// addHealthFlags adds those of MachineHealthChecks, and of the policy for Machines that none selects, whose names are those of the
// Machine Controller Manager.
func (o *options) addHealthFlags(flags *pflag.FlagSet) {
	flags.IntVar(
		&o.machineHealthCheckConcurrency,
		"machinehealthcheck-concurrency",
		50,
		"Clusters in which to judge Machines at once, and MachineHealthChecks to reconcile at once.",
	)
	flags.DurationVar(&o.health.CreationTimeout, "machine-creation-timeout", 0,
		"How long a Machine that no MachineHealthCheck selects may be without a Node before it is replaced; 0 means no limit.")
	flags.DurationVar(&o.health.HealthTimeout, "machine-health-timeout", 0,
		"How long the Node of a Machine that no MachineHealthCheck selects may be gone, not Ready, or have one of --node-conditions; 0 means no limit.")
	flags.StringSliceVar(&o.health.NodeConditions, "node-conditions", defaultNodeConditions,
		"Types of Node conditions that make a Machine unhealthy when they are True for longer than --machine-health-timeout.")
}
