// Package instance implements the kit's Driver on Compute Engine.
package instance

import (
	"context"
	"net/http"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/utils/ptr"

	"millwright.dev/providers/driver"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/credentials"
)

// Labels by which instances and disks are marked. Users cannot set them: see GCPMachineSpec. Compute Engine takes lower-case letters,
// digits, _ and - in labels, at most 63: a UID and a lineage are that as they are, a token has 50 characters or so, and of the owner,
// which has a slash, there is driver.OwnerDigest.
const (
	LabelOwnerUID = "millwright-owner-uid"
	LabelOwner    = "millwright-owner"
	LabelToken    = "millwright-token"
	LabelLineage  = "millwright-lineage"
)

// DefaultEndpoint is where Compute Engine is.
const DefaultEndpoint = "https://compute.googleapis.com/compute/v1"

// Driver implements driver.Driver on Compute Engine.
type Driver struct {
	endpoint   string
	http       *http.Client
	own        Caller
	identities Identities
	stops      stops
	types      machineTypesRead
	deletions  deletions
	listed     listed
}

var (
	_ driver.Driver[*infrav1.GCPMachine]      = (*Driver)(nil)
	_ driver.Unprotector[*infrav1.GCPMachine] = (*Driver)(nil)
	_ driver.LeftoverLister                   = (*Driver)(nil)
	_ driver.Remarker                         = (*Driver)(nil)
)

// Caller has the access tokens that calls are made with.
type Caller interface {
	// Token returns one. It is asked for each call, so that it decides itself when a new one is needed.
	Token(ctx context.Context) (string, error)
	// Refused reports that Compute Engine has answered that a token is none, or not any more.
	Refused(token string)
}

// Identities are the sessions of GCPIdentities, by name.
type Identities interface {
	// Get returns the session of an identity.
	Get(ctx context.Context, name string) (*credentials.Session, error)
}

// New returns a Driver that calls the API at an address, such as DefaultEndpoint, by a transport.
func New(endpoint string, transport http.RoundTripper, own Caller) *Driver {
	// Without redirects, which would carry the token elsewhere.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Driver{endpoint: endpoint, http: &http.Client{Transport: transport, CheckRedirect: stay}, own: own}
}

// WithIdentities has the driver call with the sessions of identities in scopes that have one. Call it before the first use.
func (d *Driver) WithIdentities(identities Identities) *Driver {
	d.identities = identities
	return d
}

// caller returns whose tokens the calls of a scope are made with.
func (d *Driver) caller(ctx context.Context, scope driver.Scope) (Caller, error) {
	switch {
	case scope.Identity == "":
		return d.own, nil
	case d.identities == nil:
		return nil, driver.NewAuthError("", "", errors.New("this provider has no identities"))
	}
	session, err := d.identities.Get(ctx, scope.Identity)
	if err != nil {
		return nil, err // Of a class, and for conditions.
	}
	return session, nil
}

// maxUserData is how many bytes of bootstrap data fit into a metadata value of 256 KiB, also in base64, which compressed data needs.
const maxUserData = 192 << 10

// Traits of Compute Engine: instances are found by their names, which are unique in a zone, and a launch continues as an operation.
// Reads by name and operations show what has been done. As many handles come at a time as there is time for if each costs a call.
//
// The quotas are of a minute, 1,500 calls for each group of methods by default, where insertions, deletions and changes are one group:
// https://cloud.google.com/compute/api-quota. The rates leave a fifth of that to others.
func Traits() driver.Traits {
	return driver.Traits{
		UserDataLimit: maxUserData,
		NameLimit:     63,
		NamesByDomain: true,
		StrongReads:   true,
		CleanRefusals: true, // A refused insertion makes neither instance nor disks.
		BatchSize:     20,
		Rates: map[driver.CallKind]driver.Rate{
			driver.CallCreate: {PerSecond: 8, Burst: 40},
			driver.CallDelete: {PerSecond: 8, Burst: 40},
			driver.CallRead:   {PerSecond: 10, Burst: 50},
			driver.CallList:   {PerSecond: 1, Burst: 10},
			driver.CallModify: {PerSecond: 2, Burst: 20},
		},
	}
}

// Traits returns those of Compute Engine.
func (d *Driver) Traits() driver.Traits { return Traits() }

// Scope is the project, by whose identity.
func (d *Driver) Scope(m *infrav1.GCPMachine) driver.Scope {
	return driver.Scope{Identity: m.IdentityName(), Location: m.Spec.ProjectID()}
}

// LimitScope is the project, whatever the caller: Compute Engine counts calls for the project whose resources they are about.
func (d *Driver) LimitScope(scope driver.Scope) string { return scope.Location }

// Places are the zones of the spec, with each of its machine types.
func (d *Driver) Places(_ context.Context, launch driver.Launch[*infrav1.GCPMachine]) ([]driver.Candidate, error) {
	spec := &launch.Object.Spec
	var found []driver.Candidate
	for rank, machineType := range spec.MachineTypeNames() {
		for _, zone := range spec.ZoneNames() {
			if launch.FailureDomain == "" || launch.FailureDomain == zone {
				place := driver.Placement{ID: zone, FailureDomain: zone, InstanceType: machineType, Market: market(spec)}
				found = append(found, driver.Candidate{Placement: place, Rank: rank, Subnet: subnetOf(spec, zone)})
			}
		}
	}
	if len(found) == 0 {
		return nil, driver.NewTerminalError("Places", "", errors.Errorf("failure domain %q is not among spec.zones", launch.FailureDomain))
	}
	return found, nil
}

// subnetOf names the subnetwork, which is one of a region.
func subnetOf(spec *infrav1.GCPMachineSpec, zone string) string {
	if path := spec.SubnetworkPath(); path != "" {
		return path
	}
	return "the default network in " + zone[:max(strings.LastIndex(zone, "-"), 0)]
}

// market is what else capacity is scarce of: being taken back, or a reservation.
func market(spec *infrav1.GCPMachineSpec) string {
	if name := spec.ReservationName(); name != "" {
		return "reservation/" + name
	}
	return marketOf(string(spec.ProvisioningModel))
}

// marketOf is empty for the provisioning model that stays.
func marketOf(provisioningModel string) string {
	if provisioningModel == string(infrav1.ProvisioningModelSpot) {
		return "spot"
	}
	return ""
}

// Mark names the labels.
func (d *Driver) Mark(h driver.Handle) string {
	return "labels " + LabelOwnerUID + "=" + string(h.OwnerUID) + " and " + LabelOwner + "=" + driver.OwnerDigest(h.Owner)
}

// Protected returns whether the spec asks for deletion protection.
func (d *Driver) Protected(m *infrav1.GCPMachine) bool {
	return ptr.Deref(m.Spec.DeletionProtection, false)
}
