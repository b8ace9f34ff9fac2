package instance

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// listFrom is from how many machines on they are read by a list: Azure has no call that reads several by their names.
const listFrom = 4

// Observe reads each machine, with its run time status; many in one list of the resource group, which lacks that status. What such a
// list lacks is read by its name all the same, since a Machine fails permanently by its absence, unless it is known by its provider ID and
// is to end: it is gone then, except soon after its launch, when lists may lag. Its name is not launched again while something of it is
// left, and the object stays as long as its marked interface and disks are listed.
func (d *Driver) Observe(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	answers := make([]driver.Answer[driver.Instance], len(handles))
	s, group, err := d.in(ctx, scope)
	if err != nil {
		return driver.Failed[driver.Instance](len(handles), err)
	}
	var listed map[string]*armcompute.VirtualMachine
	if len(handles) >= listFrom {
		if listed, err = s.listMachines(ctx, group); err != nil {
			return driver.Failed[driver.Instance](len(handles), notFoundIfGroupGone(err))
		}
	}
	running := false
	for i, h := range handles {
		name, ok := target(scope, h)
		m := listed[strings.ToLower(name)]
		if m != nil && h.Ending {
			d.detached.note(scope, m)
		}
		switch {
		case !ok, m == nil && listed != nil && h.ProviderID != "" && h.Ending && !d.young.has(machineKey(scope, name), d.clock.Now()):
			answers[i].Err = notFound("VirtualMachines_Get")
			continue
		case m != nil && fromMachine(scope, m).State != driverv1.InstanceFailed: // Why it has failed is in no list.
			answers[i].Value = fromMachine(scope, m)
			continue
		}
		answers[i].Value, answers[i].Err = d.observe(ctx, s, scope, group, name, h.Ending)
		if endsBatch(answers[i].Err) {
			for j := i + 1; j < len(handles); j++ {
				answers[j].Err = answers[i].Err
			}
			break
		}
		running = running || answers[i].Value.State == driverv1.InstanceRunning
	}
	if running {
		s.addAddresses(ctx, group, answers)
	}
	return answers
}

// listMachines are all machines of a resource group, by their names in lower case.
func (s *subscription) listMachines(ctx context.Context, group string) (map[string]*armcompute.VirtualMachine, error) {
	found := map[string]*armcompute.VirtualMachine{}
	for pager := s.machines.NewListPager(group, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, classify("VirtualMachines_List", err)
		}
		for _, m := range page.Value {
			if m != nil {
				found[strings.ToLower(value(m.Name))] = m
			}
		}
	}
	return found, nil
}

func (d *Driver) observe(
	ctx context.Context, s *subscription, scope driver.Scope, group, name string, ending bool,
) (driver.Instance, error) {
	out, err := s.machines.Get(ctx, group, name,
		&armcompute.VirtualMachinesClientGetOptions{Expand: ptr(armcompute.InstanceViewTypesInstanceView)})
	if err != nil {
		return driver.Instance{}, notFoundIfGroupGone(classify("VirtualMachines_Get", err))
	}
	if ending {
		d.detached.note(scope, &out.VirtualMachine)
	}
	i, v, id := fromMachine(scope, &out.VirtualMachine), view{}, ""
	if p := out.Properties; p != nil {
		id = cmp.Or(value(p.VMID), i.Name)
		if p.InstanceView != nil {
			v = fromStatuses(p.InstanceView.Statuses)
		}
	}
	if i.State == driverv1.InstanceFailed {
		now := d.clock.Now()
		return d.failures.note(scope, id, v, now).explain(i, now), nil
	}
	return withView(i, v), nil
}

// addAddresses adds addresses to answers. Without them, an answer is right all the same: lists have them.
func (s *subscription) addAddresses(ctx context.Context, group string, answers []driver.Answer[driver.Instance]) {
	parts, err := s.listNetwork(ctx, group)
	if err != nil {
		return
	}
	for i := range answers {
		if answers[i].Err == nil {
			answers[i].Value.Addresses = parts.addresses(answers[i].Value.Name)
		}
	}
}

// List returns the marked machines of the resource group, in two lists: of machines and of interfaces; and in a third of public
// addresses, if interfaces have some. For those that have failed it is asked why, once. There are none where there is no resource group.
func (d *Driver) List(ctx context.Context, scope driver.Scope) ([]driver.Instance, error) {
	s, group, err := d.in(ctx, scope)
	if err != nil {
		return nil, err
	}
	var found []driver.Instance
	ids, states := map[string]string{}, map[string]driverv1.InstanceState{}
	for pager := s.machines.NewListPager(group, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err = classify("VirtualMachines_List", err); groupGone(err) {
			found = nil
			break
		}
		if err != nil {
			return nil, err
		}
		for _, m := range page.Value {
			if m == nil || tagOf(m.Tags, TagOwnerUID) == "" {
				continue
			}
			i := fromMachine(scope, m)
			if m.Properties != nil {
				ids[i.Name] = cmp.Or(value(m.Properties.VMID), i.Name)
				states[ids[i.Name]] = i.State
			}
			found = append(found, i)
		}
	}
	d.failures.keep(scope, states)
	if len(found) == 0 {
		return nil, nil
	}
	parts, err := s.listNetwork(ctx, group)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i].Addresses = parts.addresses(found[i].Name)
	}
	if err := d.explain(ctx, s, scope, group, found, ids); err != nil {
		return nil, err
	}
	return found, nil
}

// nameOf is the last element of a resource ID.
func nameOf(id string) string { return id[strings.LastIndex(id, "/")+1:] }

// groupOf is the resource group of a resource ID, in lower case.
func groupOf(id string) string {
	elements := strings.Split(strings.ToLower(id), "/")
	at := slices.Index(elements, "resourcegroups")
	if at < 0 || at+1 >= len(elements) {
		return ""
	}
	return elements[at+1]
}

// inGroup is true if a resource ID is in a resource group.
func inGroup(id, group string) bool { return groupOf(id) == strings.ToLower(group) }
