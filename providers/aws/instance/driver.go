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
	name     string
	api      API
	images   *lookup[image]
	subnets  *lookup[[]subnet]
	groups   *lookup[[]string]
	capacity *shortages
	// models are what it offers, by instance type.
	models *lookup[model]
}

// New returns a Driver.
func New(clients Clients, clk clock.PassiveClock) *Driver {
	return &Driver{clients: clients, clock: clk, regions: map[string]*region{}}
}

// Scope is the region: the account is that of the process's credentials.
func (d *Driver) Scope(m *infrav1.AWSMachine) driver.Scope {
	return driver.Scope(m.Spec.Region)
}

// UserDataLimit is EC2's limit on user data in bytes, before base64; see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html.
func (d *Driver) UserDataLimit() int { return 16 * 1024 }

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
		name:     name,
		api:      api,
		images:   newLookup[image](d.clock, searchTTL),
		subnets:  newLookup[[]subnet](d.clock, searchTTL),
		groups:   newLookup[[]string](d.clock, searchTTL),
		capacity: newShortages(d.clock),
		models:   newLookup[model](d.clock, searchTTL),
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
