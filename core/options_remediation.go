package main

import (
	"github.com/spf13/pflag"

	"millwright.dev/core/remediation"
)

// addRemediationFlags adds those of the limits within which unhealthy Machines are replaced.
func (o *options) addRemediationFlags(flags *pflag.FlagSet) {
	defaults := remediation.DefaultOptions()
	flags.StringVar(&o.remediation.MaxInFlight, "remediation-max-in-flight", defaults.MaxInFlight,
		"How many Machines of a MachineDeployment without spec.remediation.maxInFlight may be replaced at once, as a number or a percentage "+
			"rounded up; a replacement counts until it has become available. Without limit when empty.")
	flags.StringVar(&o.remediation.MaxInFlightPerCluster, "remediation-max-in-flight-per-cluster", defaults.MaxInFlightPerCluster,
		"How many Machines of a Cluster may be replaced at once, over all its MachineDeployments. Without limit when empty.")
	flags.StringVar(&o.remediation.StopAbove, "remediation-stop-above", defaults.StopAbove,
		"While more Machines of a Cluster are unhealthy than this number or percentage, rounded down, none is replaced.")
	flags.IntVar(&o.remediation.Max, "remediation-max-retry", defaults.Max,
		"How often a replacement that became unhealthy itself is replaced again; -1 for no limit.")
	flags.DurationVar(&o.remediation.Period, "remediation-retry-period", defaults.Period,
		"The time from one replacement to the next retry.")
	flags.DurationVar(&o.remediation.MinHealthy, "remediation-min-healthy-period", defaults.MinHealthy,
		"How long a replacement must have been available for what happens to it then to be no retry.")
}
