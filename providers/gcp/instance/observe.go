package instance

import (
	"cmp"
	"context"

	apitypes "k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Observe reads the instances by their names, in one list, and those that it lacks as absent says.
func (d *Driver) Observe(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	var names []string
	for _, h := range handles {
		if _, name, ok := target(scope, h); ok {
			names = append(names, name)
		}
	}
	// For the cloud an empty filter would be everything.
	var all []driver.Instance
	var answered zones
	var err error
	if len(names) > 0 {
		all, _, answered, err = d.instances(ctx, scope, anyOf("name", names))
	}
	answers := make([]driver.Answer[driver.Instance], len(handles))
	errs := each(ctx, "Observe", scope, handles, func(i int) (failure error) {
		h := handles[i]
		zone, name, ok := target(scope, h)
		switch {
		case lacks(err, zone) != nil:
			return lacks(err, zone)
		case !ok:
			return notFound("instances.aggregatedList")
		}
		if found, ok := pick(scope, h, all); ok {
			answers[i].Value = found
			return nil
		}
		answers[i].Value, failure = d.absent(ctx, scope, h, zone, name, answered[zone])
		return failure
	})
	for i, err := range errs {
		answers[i].Err = err
	}
	d.markPreempted(ctx, scope, handles, answers)
	return answers
}

// pick is the one of the instances that a handle leads to.
func pick(scope driver.Scope, h driver.Handle, all []driver.Instance) (driver.Instance, bool) {
	zone, name, _ := target(scope, h)
	for _, i := range all {
		// One of another launch does not show what has become of this one.
		if i.FailureDomain == zone && i.Name == name && (h.ProviderID != "" || h.Operation == "" || h.Token == i.Token) {
			if h.ProviderID != "" {
				i.ProviderID = providerID(scope, zone, name)
			}
			return i, true
		}
	}
	return driver.Instance{}, false
}

// List returns the instances that carry a mark, of all zones that answer. Insertions that have failed are in no list: Observe reads their
// operations.
func (d *Driver) List(ctx context.Context, scope driver.Scope) ([]driver.Instance, error) {
	all, stopped, _, err := d.instances(ctx, scope, "labels."+LabelOwnerUID+":*")
	if err == nil {
		d.stops.keep(scope, stopped)
	}
	return all, err
}

// instances are what the kit has to know of those that a filter selects, and the spot instances among them that have stopped, by their IDs.
// Another list shows whether Compute Engine has stopped those, until that is known.
func (d *Driver) instances(
	ctx context.Context, scope driver.Scope, filter string,
) (all []driver.Instance, stopped map[string]int, answered zones, err error) {
	found, answered, err := aggregated[vm](ctx, d, scope, "instances", vmFields, filter)
	if err != nil && driver.AsIncomplete(err) == nil {
		return nil, nil, nil, err
	}
	all, stopped = make([]driver.Instance, 0, len(found)), map[string]int{}
	unknown := map[string]int{}
	d.listed.add(scope, found)
	for n := range found {
		v := &found[n]
		i := v.instance(scope)
		if i.Interruptible && i.State == driverv1.InstanceStopped {
			stopped[v.ID] = n
			known := false
			if i.Interrupted, known = d.stops.of(scope, v.ID, v.LastStopTimestamp); !known {
				unknown[v.ID] = n
			}
		}
		all = append(all, i)
	}
	if len(unknown) > 0 {
		whole := d.markInterrupted(ctx, scope, all, unknown)
		for id, n := range unknown {
			if whole || all[n].Interrupted {
				d.stops.note(scope, id, found[n].LastStopTimestamp, all[n].Interrupted)
			}
		}
	}
	return all, stopped, answered, err
}

// states are those of instances. One that is not known counts as pending: it is waited for, and nothing is concluded from it. STOPPING
// may mean that the instance is being deleted as well as that it is stopped; what has been deleted is missing in all answers.
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
		ID: v.Name, Incarnation: v.ID, Name: v.Name, Token: v.Labels[LabelToken],
		OwnerUID: apitypes.UID(v.Labels[LabelOwnerUID]), Owner: v.Labels[LabelOwner],
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
