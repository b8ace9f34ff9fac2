// Command ec2-simulator serves the EC2 Query API of a simulated account on loopback, with machines
// that boot, and a control interface for tests below /_sim/.
package main

import (
	"time"

	"github.com/spf13/pflag"

	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/simulator"
	"millwright.dev/test/clouds/simulator/program"
)

func main() {
	var (
		base     program.Options
		account  ec2.Options
		throttle bool
	)
	base.AddFlags(pflag.CommandLine)
	pflag.BoolVar(&throttle, "throttle", false, "limit requests as EC2 does by default")
	pflag.StringVar(&account.Region, "region", "us-east-1", "the region of the account")
	pflag.Uint64Var(&account.Seed, "seed", 0, "makes the generated IDs the same in each run; 0 for random ones")
	d := &account.Delays
	pflag.DurationVar(&d.Pending, "pending-delay", time.Second, "time from RunInstances to the state running")
	pflag.DurationVar(&d.ShuttingDown, "shutting-down-delay", time.Second, "time from TerminateInstances to the state terminated")
	pflag.DurationVar(&d.Consistency, "consistency-delay", 0, "time for which a new instance is not found")
	pflag.DurationVar(&d.Forget, "forget-delay", time.Hour, "time for which a terminated instance is described")
	pflag.Parse()
	if throttle {
		account.Throttles = ec2.DefaultThrottles()
	}
	program.Main("ec2-simulator", "EC2", &base, func(m simulator.Machines) program.Cloud {
		account.Machines = m
		return ec2.New(account)
	})
}
