package instance

import (
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/utils/clock"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// Driver implements driver.Driver on EC2.
type Driver struct {
	clients Clients
	clock   clock.PassiveClock

	// sessions of identities; nil if there are none.
	sessions Sessions
	// ownAccount is that of the process's own credentials; nil until it is known.
	ownAccount atomic.Pointer[string]

	mu sync.Mutex
	// regions are those of the process's own credentials.
	regions map[string]*region
	// identities have those of sessions, by the names of the identities.
	identities map[string]*held
}

var _ driver.Driver[*infrav1.AWSMachine] = (*Driver)(nil)

// region is what is kept for one region.
type region struct {
	name string
	// identity is the name of the AWSIdentity; empty for the credentials of the process.
	identity string
	api      API
	clock    clock.PassiveClock
	images   *lookup[image]
	subnets  *lookup[[]subnet]
	groups   *lookup[[]string]
	// models are what it offers, by instance type.
	models *lookup[model]
}

// New returns a Driver.
func New(clients Clients, clk clock.PassiveClock) *Driver {
	return &Driver{clients: clients, clock: clk, regions: map[string]*region{}, identities: map[string]*held{}}
}

// Scope is the region, with the identity: the account is that of its credentials, or of those of the process.
func (d *Driver) Scope(m *infrav1.AWSMachine) driver.Scope {
	return driver.Scope{Identity: m.IdentityName(), Location: m.Spec.Region}
}

// Traits of EC2: lists and lookups lag behind, launches are found by their client tokens, and ended instances stay listed for an hour.
//
// User data is limited before base64, see https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html. The buckets are those of
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html.
func Traits() driver.Traits {
	return driver.Traits{
		UserDataLimit: 16 * 1024,
		CleanRefusals: true, // RunInstances makes everything or nothing.
		BatchSize:     100,
		Rates: map[driver.CallKind]driver.Rate{
			// EC2 has room for 5 at once. One less: calls do not arrive as evenly as they begin, and a single one that is
			// throttled halves the rate for minutes.
			driver.CallCreate: {PerSecond: 2, Burst: 4},
			driver.CallDelete: {PerSecond: 5, Burst: 100},
			driver.CallRead:   {PerSecond: 20, Burst: 100},
			driver.CallList:   {PerSecond: 10, Burst: 50},
			driver.CallModify: {PerSecond: 5, Burst: 50},
		},
	}
}

// Traits returns those of EC2.
func (d *Driver) Traits() driver.Traits { return Traits() }

// newRegion is what is kept for a region and one session.
func (d *Driver) newRegion(scope driver.Scope, api API) *region {
	return &region{
		name: scope.Location, identity: scope.Identity, api: api, clock: d.clock,
		images:  newLookup[image](d.clock, searchTTL),
		subnets: newLookup[[]subnet](d.clock, searchTTL),
		groups:  newLookup[[]string](d.clock, searchTTL),
		models:  newLookup[model](d.clock, searchTTL),
	}
}

// providerID is the form that the AWS cloud-controller-manager gives to Nodes.
func providerID(zone, id string) string {
	return "aws:///" + zone + "/" + id
}

// instanceID returns the last part of a provider ID.
func instanceID(providerID string) string {
	return providerID[strings.LastIndex(providerID, "/")+1:]
}
