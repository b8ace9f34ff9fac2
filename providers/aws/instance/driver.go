package instance

import (
	"context"
	"strings"
	"sync"

	"k8s.io/utils/clock"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// Driver implements driver.Driver on EC2.
type Driver struct {
	clients Clients
	clock   clock.PassiveClock

	mu      sync.Mutex
	regions map[string]*region
}

var _ driver.Driver[*infrav1.AWSMachine] = (*Driver)(nil)

// region is what is kept for one region.
type region struct {
	name    string
	api     API
	images  *lookup[image]
	subnets *lookup[[]subnet]
	groups  *lookup[[]string]
	// models are what it offers, by instance type.
	models *lookup[model]
}

// New returns a Driver.
func New(clients Clients, clk clock.PassiveClock) *Driver {
	return &Driver{clients: clients, clock: clk, regions: map[string]*region{}}
}

// Scope is the region: the account is that of the process's credentials.
func (d *Driver) Scope(m *infrav1.AWSMachine) driver.Scope {
	return driver.Scope{Location: m.Spec.Region}
}

// LimitScope is the scope itself: one account in one region.
func (d *Driver) LimitScope(scope driver.Scope) string { return scope.String() }

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
			driver.CallCreate: {PerSecond: 2, Burst: 5},
			driver.CallDelete: {PerSecond: 5, Burst: 100},
			driver.CallRead:   {PerSecond: 20, Burst: 100},
			driver.CallList:   {PerSecond: 10, Burst: 50},
			driver.CallModify: {PerSecond: 5, Burst: 50},
		},
	}
}

// Traits returns those of EC2.
func (d *Driver) Traits() driver.Traits { return Traits() }

// in returns what is kept for a region, and makes its client at the first call.
func (d *Driver) in(ctx context.Context, name string) (*region, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r, ok := d.regions[name]; ok {
		return r, nil
	}
	api, err := d.clients(ctx, name)
	if err != nil {
		return nil, driver.NewAuthError("LoadConfig", "", err)
	}
	r := &region{
		name:    name,
		api:     api,
		images:  newLookup[image](d.clock, searchTTL),
		subnets: newLookup[[]subnet](d.clock, searchTTL),
		groups:  newLookup[[]string](d.clock, searchTTL),
		models:  newLookup[model](d.clock, searchTTL),
	}
	d.regions[name] = r
	return r, nil
}

// providerID is the form that the AWS cloud-controller-manager gives to Nodes.
func providerID(zone, id string) string {
	return "aws:///" + zone + "/" + id
}

// instanceID returns the last part of a provider ID.
func instanceID(providerID string) string {
	return providerID[strings.LastIndex(providerID, "/")+1:]
}
