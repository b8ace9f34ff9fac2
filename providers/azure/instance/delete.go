package instance

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
)

// Delete asks for the end of each machine. Interface, disks and public address go with it. Those of a machine that was made by hand may
// not, so they get the mark first, by which Cleanup finds them.
func (d *Driver) Delete(ctx context.Context, scope driver.Scope, handles []driver.Handle) []error {
	failures := make([]error, len(handles))
	s, group, err := d.in(ctx, scope)
	for i, h := range handles {
		name, ok := target(scope, h)
		switch {
		case err != nil:
			failures[i] = err
		case !ok:
			failures[i] = notFound("VirtualMachines_Delete")
		default:
			failures[i] = d.deleteMachine(ctx, s, scope, group, name, h)
		}
		if endsBatch(failures[i]) {
			err = failures[i]
		}
	}
	return failures
}

func (d *Driver) deleteMachine(
	ctx context.Context, s *subscription, scope driver.Scope, group, name string, h driver.Handle,
) error {
	const operation = "VirtualMachines_Delete"
	this := machineKey(scope, name)
	if continues, err := d.followDeletion(ctx, s, this, operation); continues || err != nil {
		return err
	}
	if err := d.claim(ctx, s, group, this, h); err != nil {
		return err
	}
	var response *http.Response
	// The Node is drained, or given up: the operating system is not waited for, unless Azure insists.
	options := &armcompute.VirtualMachinesClientBeginDeleteOptions{ForceDeletion: ptr(!d.deletions.get(this).unforced)}
	_, err := s.machines.BeginDelete(policy.WithCaptureResponse(ctx, &response), group, name, options)
	if err != nil && forceRefused.MatchString(err.Error()) {
		d.deletions.unforce(this, d.clock.Now())
		options.ForceDeletion = ptr(false)
		_, err = s.machines.BeginDelete(policy.WithCaptureResponse(ctx, &response), group, name, options)
	}
	switch {
	case err != nil:
		return notFoundIfGroupGone(classify(operation, err))
	case response != nil && response.StatusCode == http.StatusNoContent:
		return notFound(operation)
	}
	d.deletions.remember(this, response, d.clock.Now())
	return nil
}

// kindDisks is the kind of what belongs to Microsoft.Compute.
const kindDisks = "disks"

// piece is something that a machine is launched with.
type piece struct {
	kind, name string
	tags       map[string]*string
	used       bool
	deleting   bool
}

// pieces lists what machines are launched with, in the order in which it can be ended: public addresses belong to interfaces.
func (s *subscription) pieces(ctx context.Context, group string) ([]piece, error) {
	var found []piece
	for _, kind := range []string{kindInterfaces, kindAddresses} {
		list, err := s.network.list(ctx, group, kind)
		if err != nil {
			return nil, classify(kind+"_List", err)
		}
		for i := range list {
			r := &list[i]
			found = append(found, piece{kind, r.Name, r.Tags, r.used(), strings.EqualFold(r.Properties.ProvisioningState, "Deleting")})
		}
	}
	for pager := s.disks.NewListByResourceGroupPager(group, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, classify("Disks_List", err)
		}
		for _, d := range page.Value {
			if d != nil {
				deleting := d.Properties != nil && strings.EqualFold(value(d.Properties.ProvisioningState), "Deleting")
				found = append(found, piece{kindDisks, value(d.Name), d.Tags, value(d.ManagedBy) != "", deleting})
			}
		}
	}
	return found, nil
}

// end asks for the end of a piece.
func (d *Driver) end(ctx context.Context, s *subscription, scope driver.Scope, group string, p piece) error {
	operation := strings.ToUpper(p.kind[:1]) + p.kind[1:] + "_Delete"
	this := resourceKey{scope, p.kind, strings.ToLower(p.name)}
	if continues, err := d.followDeletion(ctx, s, this, operation); continues || err != nil {
		return err
	}
	var response *http.Response
	var err error
	ctx = policy.WithCaptureResponse(ctx, &response)
	if p.kind == kindDisks {
		_, err = s.disks.BeginDelete(ctx, group, p.name, nil)
	} else {
		err = s.network.end(ctx, group, p.kind, p.name)
	}
	if err != nil {
		return classify(operation, err)
	}
	d.deletions.remember(this, response, d.clock.Now())
	return nil
}

// Cleanup lists what carries the owners' marks and ends what nothing uses: what a failed launch has left, and what Azure has not deleted
// with the machine. Nothing is left where there is no resource group.
func (d *Driver) Cleanup(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	s, group, err := d.in(ctx, scope)
	if err != nil {
		return driver.Failed[[]string](len(handles), err)
	}
	found, err := s.pieces(ctx, group)
	if err != nil && !groupGone(err) {
		return driver.Failed[[]string](len(handles), err)
	}
	answers := make([]driver.Answer[[]string], len(handles))
	for _, p := range found {
		for i, h := range handles {
			if !h.Owns(marked(p.tags)) {
				continue
			}
			answers[i].Value = append(answers[i].Value, p.kind+"/"+p.name)
			if p.used || p.deleting || answers[i].Err != nil {
				continue
			}
			if err := d.end(ctx, s, scope, group, p); driver.IgnoreNotFound(err) != nil {
				answers[i].Err = err
			}
		}
	}
	return answers
}

// ListLeftovers returns what carries a mark and is used by nothing.
func (d *Driver) ListLeftovers(ctx context.Context, scope driver.Scope) ([]driver.Leftover, error) {
	s, group, err := d.in(ctx, scope)
	if err != nil {
		return nil, err
	}
	found, err := s.pieces(ctx, group)
	if groupGone(err) {
		return nil, nil
	}
	var left []driver.Leftover
	for _, p := range found {
		if i := marked(p.tags); i.OwnerUID != "" && !p.used && !p.deleting {
			left = append(left, driver.Leftover{Kind: p.kind, ID: p.name, OwnerUID: i.OwnerUID, Owner: i.Owner, Lineage: i.Lineage})
		}
	}
	return left, err
}

// parts are interfaces by the names of their machines, and public addresses by their IDs.
type parts struct {
	interfaces map[string][]networkPart
	public     map[string]string
}

func (s *subscription) listNetwork(ctx context.Context, group string) (parts, error) {
	found := parts{interfaces: map[string][]networkPart{}, public: map[string]string{}}
	interfaces, err := s.network.list(ctx, group, kindInterfaces)
	if err != nil {
		return found, classify("NetworkInterfaces_List", err)
	}
	anyPublic := false
	for _, n := range interfaces {
		m := n.Properties.VirtualMachine
		if m == nil || !inGroup(m.ID, group) || tagOf(n.Tags, TagOwnerUID) == "" {
			continue
		}
		name := strings.ToLower(nameOf(m.ID))
		found.interfaces[name] = append(found.interfaces[name], n)
		for _, ip := range n.Properties.IPConfigurations {
			anyPublic = anyPublic || ip.Properties.PublicIPAddress != nil
		}
	}
	for name := range found.interfaces {
		slices.SortFunc(found.interfaces[name], byPrimary)
	}
	if !anyPublic {
		return found, nil
	}
	addresses, err := s.network.list(ctx, group, kindAddresses)
	if err != nil {
		return found, classify("PublicIPAddresses_List", err)
	}
	for _, a := range addresses {
		found.public[strings.ToLower(a.ID)] = a.Properties.IPAddress
	}
	return found, nil
}

func (p parts) addresses(name string) []clusterv1.MachineAddress {
	return addressesOf(name, p.interfaces[strings.ToLower(name)], p.public)
}
