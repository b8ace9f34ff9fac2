// Command azure-simulator serves Azure Resource Manager of a simulated tenant on loopback, with machines that boot, and a control
// interface for tests below /_sim/.
package main

import (
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/azure/entra"
	"millwright.dev/test/clouds/simulator"
	"millwright.dev/test/clouds/simulator/program"
)

func main() {
	var (
		base     program.Options
		tenant   arm.Options
		throttle bool
		quotas   map[string]int
		features []string
	)
	base.AddFlags(pflag.CommandLine)
	pflag.BoolVar(&throttle, "throttle", false, "limit requests as Azure documents it for a subscription")
	pflag.Uint64Var(&tenant.Seed, "seed", 0, "makes the generated IDs the same in each run; 0 for random ones")
	d := &tenant.Delays
	pflag.DurationVar(&d.Create, "create-delay", time.Second, "time from the PUT of a virtual machine until it runs, or has failed")
	pflag.DurationVar(&d.Delete, "delete-delay", time.Second, "time from the DELETE of a virtual machine until it is gone")
	pflag.DurationVar(&d.Power, "power-delay", time.Second, "time that a change of power takes")
	pflag.DurationVar(&d.List, "list-delay", 0, "time until lists have what was created; reads by name have it at once")
	pflag.StringToIntVar(&quotas, "quota", nil,
		"limits of cores by family, as standardDSv5Family=8; also cores, lowPriorityCores and PublicIPAddresses")
	pflag.StringSliceVar(&features, "feature", nil, "features that the subscription has registered: EncryptionAtHost, UseStandardSecurityType")
	pflag.DurationVar(&d.Part, "part-delay", 0, "time until a deleted disk, interface or address is gone")
	pflag.Parse()
	if throttle {
		tenant.Throttles = arm.DefaultThrottles()
	}
	tenant.Catalog = arm.DefaultCatalog()
	tenant.Catalog.Quotas, tenant.Catalog.Features = quotas, features
	program.Main("azure-simulator", "Azure Resource Manager", &base, func(m simulator.Machines) program.Cloud {
		tenant.Machines = m
		return &azure{Server: arm.New(tenant), identities: identities()}
	})
}

// Its tokens are what the endpoint of managed identities issues.
const (
	tenantID = "00000000-0000-0000-0000-0000000000aa"
	clientID = "00000000-0000-0000-0000-0000000000bb"
)

// identities issues tokens to clients that have its address in IDENTITY_ENDPOINT. Others are accepted with any token.
func identities() *entra.Front {
	front := entra.New(clock.RealClock{})
	front.SetManagedIdentity(entra.Application{
		Tenant: tenantID, ClientID: clientID, ObjectID: clientID, Subscriptions: []string{arm.DefaultSubscription},
	})
	return front
}

// azure is a tenant with its identities.
type azure struct {
	*arm.Server
	identities *entra.Front
}

// ServeHTTP answers what is below /msi/ as a host with a managed identity, and everything else as Azure Resource Manager.
func (a *azure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/msi/") {
		a.identities.ServeHTTP(w, r)
		return
	}
	a.Server.ServeHTTP(w, r)
}
