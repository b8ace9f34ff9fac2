// Package instance implements the kit's Driver on the example cloud.
package instance

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/pkg/errors"
	apitypes "k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// Labels by which machines and what belongs to them are marked. Users cannot set them: see ExampleMachineSpec.
const (
	LabelOwnerUID = "millwright-owner-uid"
	LabelOwner    = "millwright-owner"
	LabelToken    = "millwright-token"
	LabelLineage  = "millwright-lineage"
)

// Driver implements driver.Driver, driver.StatusLister, driver.LeftoverLister and driver.Remarker.
type Driver struct {
	endpoint string
	http     *http.Client
	tokens   Tokens
}

var _, _, _ any = driver.StatusLister((*Driver)(nil)), driver.LeftoverLister((*Driver)(nil)), driver.Remarker((*Driver)(nil))

// partKinds are what a machine is launched with.
var partKinds = []string{"interfaces", "addresses", "disks"}

// New returns a Driver that calls the API at an address by a transport.
func New(endpoint string, transport http.RoundTripper, tokens Tokens) *Driver {
	// Without redirects, which would carry the token elsewhere.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Driver{endpoint: endpoint, http: &http.Client{Transport: transport, CheckRedirect: stay}, tokens: tokens}
}

// Traits of the cloud. A batch has as many handles as there is time for if each takes a call: the cloud deletes one at a time.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		UserDataLimit: 32 * 1024, NameLimit: 40, BatchSize: 20, StatusInterval: time.Minute,
		NamesByDomain: true, StrongReads: true, CleanRefusals: true,
		Rates: map[driver.CallKind]driver.Rate{
			driver.CallCreate: {PerSecond: 10, Burst: 20}, driver.CallDelete: {PerSecond: 1, Burst: 2}, driver.CallRead: {PerSecond: 5, Burst: 20},
			driver.CallList: {PerSecond: 1, Burst: 5}, driver.CallModify: {PerSecond: 0.2, Burst: 1},
		},
	}
}

// Scope is the account.
func (d *Driver) Scope(m *examplev1.ExampleMachine) driver.Scope {
	return driver.Scope{Location: m.Spec.Account}
}

// LimitScope is the account, for all callers.
func (d *Driver) LimitScope(scope driver.Scope) string { return scope.Location }

// Places are the zones of the spec, with each of its types.
func (d *Driver) Places(_ context.Context, launch driver.Launch[*examplev1.ExampleMachine]) ([]driver.Candidate, error) {
	spec, found := launch.Object.Spec, []driver.Candidate(nil)
	for rank, machineType := range append([]string{spec.MachineType}, spec.FallbackMachineTypes...) {
		for _, zone := range spec.Zones {
			if launch.FailureDomain == "" || launch.FailureDomain == zone {
				place := driver.Placement{ID: zone, FailureDomain: zone, InstanceType: machineType, Market: market[spec.Spot]}
				found = append(found, driver.Candidate{Placement: place, Rank: rank})
			}
		}
	}
	if len(found) == 0 {
		return nil, driver.NewTerminalError("Places", "", errors.Errorf("failure domain %q is not among spec.zones", launch.FailureDomain))
	}
	return found, nil
}

// Create requests a machine unless there is one of its name.
func (d *Driver) Create(ctx context.Context, launch driver.Launch[*examplev1.ExampleMachine]) (driver.Accepted, error) {
	spec := launch.Object.Spec
	labels := map[string]string{}
	for k, v := range spec.Labels {
		labels[k] = string(v)
	}
	labels[LabelOwnerUID], labels[LabelOwner] = string(launch.OwnerUID), driver.OwnerDigest(launch.Owner)
	labels[LabelToken], labels[LabelLineage] = launch.Token, launch.Lineage
	body := map[string]any{
		"requestID": launch.RequestID, "machineType": launch.Placement.InstanceType, "image": spec.Image, "spot": spec.Spot,
		"labels": labels, "userData": launch.UserData,
	}
	path := []string{"zones", launch.Placement.ID, "machines", launch.Name}
	var operation resource
	err := d.call(ctx, launch.Scope, "CreateMachine", http.MethodPut, path, nil, body, &operation)
	return driver.Accepted{Operation: operation.ID}, err
}

// Observe reads the machines by their names, and the operations of launches that are not certain yet, in one list each.
func (d *Driver) Observe(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	names, ids := url.Values{}, url.Values{}
	for _, h := range handles {
		if _, name, ok := target(scope, h); ok {
			names.Add("name", name)
		}
		if h.ProviderID == "" && h.Operation != "" {
			ids.Add("id", h.Operation)
		}
	}
	machines, err := d.list(ctx, scope, "machines", names)
	operations, operationsErr := d.list(ctx, scope, "operations", ids)
	if err = cmp.Or(err, operationsErr); err != nil {
		return driver.Failed[driver.Instance](len(handles), err)
	}
	answers := make([]driver.Answer[driver.Instance], len(handles))
	for i, h := range handles {
		answers[i].Value, answers[i].Err = observed(scope, h, machines, operations)
	}
	return answers
}

// observed is what the cloud has of a handle.
func observed(scope driver.Scope, h driver.Handle, machines, operations []resource) (driver.Instance, error) {
	zone, name, _ := target(scope, h)
	launch := resource{}
	for _, o := range operations {
		// An operation about something else was written into the object by another user.
		if o.ID == h.Operation && o.Kind == "CreateMachine" && o.Zone == zone && o.Name == name {
			launch = o
		}
	}
	for _, m := range machines {
		// If the launch has failed, a machine of that name belongs to another object, unless the cloud has kept it.
		if m.Zone == zone && m.Name == name && (launch.Status != "failed" || m.Operation == launch.ID) {
			return m.instance(scope), nil
		}
	}
	if launch.ID != "" && launch.Status != "done" {
		return launch.instance(scope), nil
	}
	return driver.Instance{}, notFound("List machines")
}

// Delete requests the deletion of each machine.
func (d *Driver) Delete(ctx context.Context, scope driver.Scope, handles []driver.Handle) []error {
	failures := make([]error, len(handles))
	for i, h := range handles {
		failures[i] = notFound("Delete machines")
		if zone, name, ok := target(scope, h); ok {
			failures[i] = d.end(ctx, scope, zone, "machines", name)
		}
	}
	return failures
}

// Cleanup lists what has the owners' labels and deletes what nothing uses, the disks of machines that were never created included.
func (d *Driver) Cleanup(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	answers := make([]driver.Answer[[]string], len(handles))
	for _, kind := range partKinds {
		parts, err := d.marked(ctx, scope, kind, handles)
		if err != nil {
			return driver.Failed[[]string](len(handles), err)
		}
		for _, p := range parts {
			for i, h := range handles {
				if h.Owns(p.instance(scope)) {
					answers[i].Value = append(answers[i].Value, kind+"/"+p.Name)
					if p.UsedBy == "" && !p.Deleting {
						answers[i].Err = cmp.Or(answers[i].Err, driver.IgnoreNotFound(d.end(ctx, scope, p.Zone, kind, p.Name)))
					}
				}
			}
		}
	}
	return answers
}

// marked lists what has the first half of the mark of one of the handles.
func (d *Driver) marked(ctx context.Context, scope driver.Scope, kind string, handles []driver.Handle) ([]resource, error) {
	owners := url.Values{}
	for _, h := range handles {
		owners.Add("label", LabelOwnerUID+"="+string(h.OwnerUID))
	}
	return d.list(ctx, scope, kind, owners)
}

// Remark sets the label of all that has the mark: of the machine last, by which the kit sees that it is done.
func (d *Driver) Remark(ctx context.Context, scope driver.Scope, handles []driver.Handle, lineage string) []error {
	failures, body := make([]error, len(handles)), map[string]any{"labels": map[string]string{LabelLineage: lineage}}
	for _, kind := range append(partKinds[:len(partKinds):len(partKinds)], "machines") {
		all, err := d.marked(ctx, scope, kind, handles)
		for i, h := range handles {
			failures[i] = cmp.Or(failures[i], err)
			for _, r := range all {
				if failures[i] == nil && h.Owns(r.instance(scope)) {
					path := []string{"zones", r.Zone, kind, r.Name}
					failures[i] = driver.IgnoreNotFound(d.call(ctx, scope, "Label "+kind, http.MethodPatch, path, nil, body, &resource{}))
				}
			}
		}
	}
	return failures
}

// List returns the machines with a mark, and the creations that have failed and left none.
func (d *Driver) List(ctx context.Context, scope driver.Scope) ([]driver.Instance, error) {
	machines, err := d.list(ctx, scope, "machines", url.Values{"label": {LabelOwnerUID}})
	if err != nil {
		return nil, err
	}
	failed := url.Values{"label": {LabelOwnerUID}, "kind": {"CreateMachine"}, "status": {"failed"}}
	operations, err := d.list(ctx, scope, "operations", failed)
	found, kept := []driver.Instance(nil), map[string]bool{}
	for _, m := range machines {
		found, kept[m.Operation] = append(found, m.instance(scope)), true
	}
	for _, o := range operations {
		if !kept[o.ID] {
			found = append(found, o.instance(scope))
		}
	}
	return found, err
}

// ListStatus returns which machines have no power: the other lists do not show it.
func (d *Driver) ListStatus(ctx context.Context, scope driver.Scope) (map[string]driver.Status, error) {
	machines, err := d.list(ctx, scope, "power", url.Values{"label": {LabelOwnerUID}})
	found := map[string]driver.Status{}
	for _, m := range machines {
		if !m.On {
			off := driver.Status{State: driverv1.InstanceStopped, StateCode: m.Failure.Code, StateMessage: m.Failure.Message}
			found[providerID(scope, m.Zone, m.Name)] = off
		}
	}
	return found, err
}

// ListLeftovers returns what nothing uses.
func (d *Driver) ListLeftovers(ctx context.Context, scope driver.Scope) (found []driver.Leftover, err error) {
	for _, kind := range partKinds {
		parts, err := d.list(ctx, scope, kind, url.Values{"label": {LabelOwnerUID}})
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			if i := p.instance(scope); p.UsedBy == "" && !p.Deleting {
				left := driver.Leftover{Kind: kind, ID: p.Name, OwnerUID: i.OwnerUID, Owner: i.Owner, Lineage: i.Lineage, Created: p.CreatedAt}
				found = append(found, left)
			}
		}
	}
	return found, nil
}

// Mark names the labels.
func (d *Driver) Mark(h driver.Handle) string {
	return "labels " + LabelOwnerUID + "=" + string(h.OwnerUID) + " and " + LabelOwner + "=" + driver.OwnerDigest(h.Owner)
}

// states are those of machines. One that the cloud adds later counts as pending: the kit waits, and concludes nothing from it.
var states = map[string]driverv1.InstanceState{
	"running": driverv1.InstanceRunning, "stopped": driverv1.InstanceStopped, "deleting": driverv1.InstanceTerminating,
}

// market is the purchase option, by whether it is spot.
var market = map[bool]string{true: "spot"}

// instance has a provider ID unless the machine may disappear again, when the operation that creates it fails. The resource is a
// machine, or what is known of it from its operation, or has nothing but a mark.
func (r resource) instance(scope driver.Scope) driver.Instance {
	i := driver.Instance{
		ID: r.Name, Name: r.Name, Token: r.Labels[LabelToken], OwnerUID: apitypes.UID(r.Labels[LabelOwnerUID]), Owner: r.Labels[LabelOwner],
		State: cmp.Or(states[r.State], driverv1.InstancePending), StateCode: r.Failure.Code, StateMessage: r.Failure.Message,
		LaunchTime: r.CreatedAt, FailureDomain: r.Zone, InstanceType: r.MachineType, Market: market[r.Spot],
		Interruptible: r.Spot, Interrupted: r.Interrupted, Lineage: r.Labels[LabelLineage],
	}
	if r.State == "failed" || r.Status == "failed" {
		i.State, i.Refused = driverv1.InstanceFailed, refusedLate(r.Failure)
	}
	if r.State != "" && r.State != "creating" {
		i.ProviderID = providerID(scope, r.Zone, r.Name)
	}
	if r.PrivateAddress != "" {
		i.Addresses = []clusterv1.MachineAddress{
			{Type: clusterv1.MachineInternalIP, Address: r.PrivateAddress}, {Type: clusterv1.MachineExternalIP, Address: r.PublicAddress},
		}
	}
	return i
}
