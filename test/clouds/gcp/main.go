// Command compute-simulator serves the Compute Engine API of simulated projects on loopback, with machines that boot, and a control
// interface for tests below /_sim/.
package main

import (
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
	"millwright.dev/test/clouds/simulator/program"
	"millwright.dev/test/clouds/tokens"
)

func main() {
	var (
		base     program.Options
		cloud    compute.Options
		throttle bool
	)
	base.AddFlags(pflag.CommandLine)
	pflag.BoolVar(&throttle, "throttle", false, "limit requests by minute as Compute Engine does by default")
	pflag.StringSliceVar(&cloud.Projects, "project", []string{"millwright-test"}, "a project; may be repeated")
	d := &cloud.Delays
	pflag.DurationVar(&d.Pending, "pending-delay", 0, "time before an operation begins; until then its instance is in no answer")
	pflag.DurationVar(&d.Provisioning, "provisioning-delay", time.Second, "time in the state PROVISIONING")
	pflag.DurationVar(&d.Staging, "staging-delay", time.Second, "time in the state STAGING, after which the instance is RUNNING")
	pflag.DurationVar(&d.Stopping, "stopping-delay", time.Second, "time in the state STOPPING")
	pflag.DurationVar(&d.Listing, "listing-delay", 0, "time after which lists show a new instance, and no longer show one that is gone")
	pflag.StringToIntVar(&cloud.Quotas, "quota", nil, "limit of a quota, such as N2_CPUS=24 or us-central1/N2_CPUS=24; may be repeated")
	pflag.DurationVar(&d.Forget, "forget-delay", 14*24*time.Hour, "time for which an operation that has ended is known")
	pflag.Parse()
	if throttle {
		cloud.RatePerMinute = compute.DefaultRates()
	}
	program.Main("compute-simulator", "Compute Engine", &base, func(m simulator.Machines) program.Cloud {
		cloud.Machines = m
		return &google{Server: compute.New(cloud), metadata: tokens.Handler()}
	})
}

// google is a cloud with the metadata server of a host in it, for clients that have its address in GCE_METADATA_HOST.
type google struct {
	*compute.Server
	metadata http.Handler
}

// ServeHTTP answers what is below /computeMetadata/ as a host with a service account, and everything else as Compute Engine.
func (c *google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/computeMetadata/") {
		c.metadata.ServeHTTP(w, r)
		return
	}
	c.Server.ServeHTTP(w, r)
}
