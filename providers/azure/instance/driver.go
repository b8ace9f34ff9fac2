// Package instance implements the kit's Driver on Azure virtual machines.
package instance

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver"
)

// Driver implements driver.Driver on Azure Resource Manager.
type Driver struct {
	config   session.Config
	clock    clock.PassiveClock
	failures *failures
	sizes    *sizes
	power    *powerLists
	// deletions are those that Azure has accepted; detached are the parts that a deletion would leave.
	deletions *deletions
	detached  *detached
	young     *young
	// own are the clients with the process's own credentials.
	own *clients
	// sessions of identities; nil if there are none.
	sessions Sessions

	mu sync.Mutex
	// identities have the clients of sessions, by the names of the identities.
	identities map[string]*clients
}

var (
	_ driver.Driver[*infrav1.AzureMachine] = (*Driver)(nil)
	_ driver.StatusLister                  = (*Driver)(nil)
	_ driver.LeftoverLister                = (*Driver)(nil)
	_ driver.Remarker                      = (*Driver)(nil)
)

// New returns a Driver.
func New(config session.Config, clk clock.PassiveClock) *Driver {
	return &Driver{
		config: config, clock: clk, own: newClients(config, nil), failures: newFailures(), sizes: newSizes(), power: newPowerLists(),
		deletions: newDeletions(), detached: newDetached(), young: newYoung(), identities: map[string]*clients{},
	}
}

// maxName is how long the name of a virtual machine is at most: it is also the name of the Node, whose label kubernetes.io/hostname has
// 63 characters. Azure takes 64.
const maxName = 63

// Traits of Azure: a machine is found by its name, which is unique in its resource group, and a read of one machine is answered by the
// resource provider that has created it.
//
// Custom data is limited before base64, see https://learn.microsoft.com/azure/virtual-machines/custom-data. The buckets are those of a
// subscription, see https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling, less what others
// who call for the same subscription need.
func Traits() driver.Traits {
	return driver.Traits{
		UserDataLimit: 65535,
		NameLimit:     maxName,
		StrongReads:   true,
		// Whether a refused launch leaves the interface that it was to have is not documented, so it is looked for.
		CleanRefusals:  false,
		ListFast:       5 * time.Second,
		StatusInterval: time.Minute,
		// Azure reads and deletes one machine at a time.
		BatchSize: 20,
		Rates: map[driver.CallKind]driver.Rate{
			driver.CallCreate: {PerSecond: 8, Burst: 50},
			driver.CallDelete: {PerSecond: 0.5, Burst: 10}, // Of up to 20 requests each.
			driver.CallRead:   {PerSecond: 2, Burst: 10},   // Likewise.
			driver.CallList:   {PerSecond: 2, Burst: 20},
			driver.CallModify: {PerSecond: 0.5, Burst: 5},
		},
	}
}

// Traits returns those of Azure.
func (d *Driver) Traits() driver.Traits { return Traits() }

// Scope is the resource group in its subscription, with the identity. Both are not case-sensitive.
func (d *Driver) Scope(m *infrav1.AzureMachine) driver.Scope {
	return driver.Scope{Identity: m.IdentityName(), Location: locationOfScope(&m.Spec)}
}

// locationOfScope is the subscription and the resource group.
func locationOfScope(spec *infrav1.AzureMachineSpec) string {
	return subscriptionOf(spec.SubscriptionID) + "/" + strings.ToLower(groupName(spec.ResourceGroup))
}

// providerID is the form that the Azure cloud-controller-manager gives to Nodes: the resource group is in lower case.
func providerID(scope driver.Scope, name string) string {
	subscription, group := split(scope)
	return fmt.Sprintf("azure:///subscriptions/%s/resourceGroups/%s/providers/Microsoft.Compute/virtualMachines/%s", subscription, group, name)
}
