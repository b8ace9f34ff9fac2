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
		"No Machine of a Cluster is replaced while more of them are unhealthy than this number or percentage, rounded down.")
	flags.IntVar(&o.remediation.Max, "remediation-max-retry", defaults.Max,
		"How many times in a row a replacement that became unhealthy is replaced again; -1 for no limit.")
	flags.DurationVar(&o.remediation.Period, "remediation-retry-period", defaults.Period,
		"How long to wait after a replacement before the next retry.")
	flags.DurationVar(&o.remediation.MinHealthy, "remediation-min-healthy-period", defaults.MinHealthy,
		"How long a replacement must have been available so that replacing it later does not count as a retry.")
}
