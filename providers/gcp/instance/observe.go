package instance

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apitypes "k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Observe reads the instances by their names, in one list, and an operation where there is no instance of its launch.
func (d *Driver) Observe(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	var names []string
	for _, h := range handles {
		if _, name, ok := target(scope, h); ok {
			names = append(names, name)
		}
	}
	// For the cloud an empty filter would be everything.
	var all []driver.Instance
	var err error
	if len(names) > 0 {
		all, err = d.instances(ctx, scope, anyOf("name", names))
	}
	answers := make([]driver.Answer[driver.Instance], len(handles))
	for i, h := range handles {
		zone, _, _ := target(scope, h)
		if answers[i].Err = lacks(err, zone); answers[i].Err == nil {
			answers[i].Value, answers[i].Err = d.observe(ctx, scope, h, all)
		}
	}
	d.tellPreempted(ctx, scope, handles, answers)
	return answers
}

// observe is what the cloud has of a handle.
func (d *Driver) observe(ctx context.Context, scope driver.Scope, h driver.Handle, all []driver.Instance) (driver.Instance, error) {
	zone, name, ok := target(scope, h)
	if !ok {
		return driver.Instance{}, notFound("instances.aggregatedList")
	}
	for _, i := range all {
		// One of another launch does not show what has become of this one.
		if i.FailureDomain == zone && i.Name == name && (h.ProviderID != "" || h.Operation == "" || h.Token == i.Token) {
			if h.ProviderID != "" {
				i.ProviderID = providerID(scope, zone, name)
			}
			return i, nil
		}
	}
	if h.ProviderID != "" || h.Token == "" {
		return driver.Instance{}, notFound("instances.aggregatedList")
	}
	return d.follow(ctx, scope, h, zone, name)
}

// operationOf reads the operation of a launch: by its name, or by the request ID of the launch if the answer with the name was lost.
func (d *Driver) operationOf(ctx context.Context, scope driver.Scope, h driver.Handle, zone string) (o operation, err error) {
	if h.Operation != "" {
		err = d.call(ctx, scope, request{
			name: "zoneOperations.get", method: http.MethodGet, path: []string{"zones", zone, "operations", h.Operation},
			query: url.Values{"fields": {operationFields}},
		}, &o)
		return o, err
	}
	query := url.Values{
		"filter": {anyOf("clientOperationId", []string{driver.LaunchRequestID(h.Token)})},
		"fields": {"nextPageToken,items(" + operationFields + ")"},
	}
	for more := true; more; more = query.Get("pageToken") != "" {
		var page struct {
			Items         []operation
			NextPageToken string
		}
		err = d.call(ctx, scope, request{
			name: "zoneOperations.list", method: http.MethodGet, path: []string{"zones", zone, "operations"}, query: query,
		}, &page)
		if err != nil {
			return o, ofSpec(err)
		}
		if len(page.Items) > 0 {
			return page.Items[0], nil
		}
		query.Set("pageToken", page.NextPageToken) // A page of a filtered list may be empty and not the last one.
	}
	return o, notFound("zoneOperations.list")
}

// follow is what the operation of a launch says of an instance that is not there: it has not begun, or it has failed.
func (d *Driver) follow(ctx context.Context, scope driver.Scope, h driver.Handle, zone, name string) (driver.Instance, error) {
	o, err := d.operationOf(ctx, scope, h, zone)
	if err != nil {
		return driver.Instance{}, err
	}
	// An operation of another launch, or about something else, is one that somebody has written into the object: its mark is not known.
	if o.OperationType != "insert" || o.ClientOperationID != driver.LaunchRequestID(h.Token) ||
		!strings.HasSuffix(o.TargetLink, "/projects/"+scope.Location+"/zones/"+zone+"/instances/"+name) {
		return driver.Instance{}, notFound("zoneOperations.get")
	}
	i := driver.Instance{
		ID: name, Name: name, Token: h.Token, OwnerUID: h.OwnerUID, Owner: driver.OwnerDigest(h.Owner), FailureDomain: zone,
		State: driverv1.InstancePending, InstanceType: h.Placement.InstanceType,
	}
	switch {
	case o.Status != "DONE":
		return i, nil
	case len(o.Error.Errors) == 0:
		return driver.Instance{}, notFound("zoneOperations.get")
	}
	f := o.Error.Errors[0]
	i.State, i.StateCode, i.StateMessage, i.Refused = driverv1.InstanceFailed, f.Code, f.Message, refusedLate(f)
	return i, nil
}

// List returns the instances that carry a mark, of all zones that answer. Insertions that have failed are in no list: Observe reads their
// operations.
func (d *Driver) List(ctx context.Context, scope driver.Scope) ([]driver.Instance, error) {
	return d.instances(ctx, scope, "labels."+LabelOwnerUID+":*")
}

// instances are what the kit has to know of those that a filter selects. Where a spot instance has stopped, another list shows whether
// Compute Engine has stopped it; without that nothing is said of its zone.
func (d *Driver) instances(ctx context.Context, scope driver.Scope, filter string) ([]driver.Instance, error) {
	found, err := aggregated[vm](ctx, d, scope, "instances", vmFields, filter)
	if err != nil && driver.AsIncomplete(err) == nil {
		return nil, err
	}
	all := make([]driver.Instance, 0, len(found))
	stopped := map[string]int{}
	for n := range found {
		i := found[n].instance(scope)
		if i.Interruptible && i.State == driverv1.InstanceStopped {
			stopped[found[n].ID] = n
		}
		all = append(all, i)
	}
	if len(stopped) == 0 {
		return all, err
	}
	preemptions, unread := aggregated[operation](ctx, d, scope, "operations", operationFields, preempted)
	for _, o := range preemptions {
		if n, ok := stopped[o.TargetID]; ok {
			all[n].Interrupted = true
		}
	}
	return withoutUnread(all, err, unread)
}

// withoutUnread leaves out the zones of which one of two lists says nothing.
func withoutUnread(all []driver.Instance, err, unread error) ([]driver.Instance, error) {
	silent := driver.AsIncomplete(unread)
	switch {
	case unread == nil:
		return all, err
	case silent == nil:
		return nil, unread
	}
	missing := slices.Clone(silent.Missing)
	if partial := driver.AsIncomplete(err); partial != nil {
		missing = append(missing, partial.Missing...)
	}
	all = slices.DeleteFunc(all, func(i driver.Instance) bool { return slices.Contains(missing, i.FailureDomain) })
	return all, incomplete("instances.aggregatedList", missing)
}

// states are those of instances. One that is not known counts as pending: it is waited for, and nothing is concluded from it. STOPPING
// may mean that the instance is being deleted as well as that it is stopped; what has been deleted is gone from all answers.
var states = map[string]driverv1.InstanceState{
	"RUNNING":        driverv1.InstanceRunning,
	"STOPPING":       driverv1.InstanceStopping,
	"PENDING_STOP":   driverv1.InstanceStopping,
	"SUSPENDING":     driverv1.InstanceStopping,
	"REPAIRING":      driverv1.InstanceStopping,
	"DEPROVISIONING": driverv1.InstanceStopping,
	"STOPPED":        driverv1.InstanceStopped,
	"TERMINATED":     driverv1.InstanceStopped,
	"SUSPENDED":      driverv1.InstanceStopped,
}

// instance has a provider ID unless it has never run and may disappear again, when the operation that creates it fails.
func (v *vm) instance(scope driver.Scope) driver.Instance {
	zone := last(v.Zone)
	i := driver.Instance{
		ID: v.Name, Name: v.Name, Token: v.Labels[LabelToken], OwnerUID: apitypes.UID(v.Labels[LabelOwnerUID]), Owner: v.Labels[LabelOwner],
		Lineage: v.Labels[LabelLineage], State: cmp.Or(states[v.Status], driverv1.InstancePending), StateMessage: v.StatusMessage,
		LaunchTime: timeOf(v.CreationTimestamp), FailureDomain: zone, InstanceType: last(v.MachineType), Addresses: v.addresses(),
	}
	if i.State != driverv1.InstanceRunning {
		i.StateCode = v.Status
	}
	if s := v.Scheduling; s != nil {
		i.Market, i.Interruptible = marketOf(s.ProvisioningModel), s.ProvisioningModel == "SPOT" || s.Preemptible
	}
	if i.State != driverv1.InstancePending || v.LastStartTimestamp+v.LastStopTimestamp+v.LastSuspendedTimestamp != "" {
		i.ProviderID = providerID(scope, zone, v.Name)
	}
	return i
}

// addresses are those that the cloud controller manager of Google Cloud gives to Nodes.
func (v *vm) addresses() (all []clusterv1.MachineAddress) {
	add := func(kind clusterv1.MachineAddressType, address string) {
		if address != "" {
			all = append(all, clusterv1.MachineAddress{Type: kind, Address: address})
		}
	}
	for _, n := range v.NetworkInterfaces {
		add(clusterv1.MachineInternalIP, n.NetworkIP)
		for _, c := range n.AccessConfigs {
			add(clusterv1.MachineExternalIP, c.NatIP)
		}
		ipv6 := n.IPv6Address
		if ipv6 == "" && n.IPv6AccessType == "EXTERNAL" && len(n.IPv6AccessConfigs) > 0 {
			ipv6 = n.IPv6AccessConfigs[len(n.IPv6AccessConfigs)-1].ExternalIPv6
		}
		add(clusterv1.MachineInternalIP, ipv6)
	}
	return all
}
