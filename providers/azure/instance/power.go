package instance

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// sharedFor is how long a list of power states serves the other resource groups of its subscription. It is a third of the time after which
// a group asks again, so that many groups cost three lists a minute and not one each: Azure grants 30 of them a minute.
const sharedFor = 20 * time.Second

// powerLists are the latest lists of power states, by identity and subscription: no identity sees what another may list.
type powerLists struct {
	mu    sync.Mutex
	known map[driver.Scope]*powerList
}

// powerList is one, whose fields belong to who holds turn.
type powerList struct {
	turn chan struct{}
	at   time.Time
	// found are the machines without power, by resource group in lower case and name.
	found map[string]map[string]driver.Status
}

func newPowerLists() *powerLists { return &powerLists{known: map[driver.Scope]*powerList{}} }

// of returns the list of a subscription, and forgets those that were not asked for in a while.
func (p *powerLists) of(scope driver.Scope, now time.Time) *powerList {
	subscription, _ := split(scope)
	key := driver.Scope{Identity: scope.Identity, Location: subscription}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.known, func(k driver.Scope, l *powerList) bool {
		select {
		case l.turn <- struct{}{}:
			defer func() { <-l.turn }()
			return k != key && now.Sub(l.at) > time.Hour
		default:
			return false
		}
	})
	if p.known[key] == nil {
		p.known[key] = &powerList{turn: make(chan struct{}, 1), at: now.Add(-sharedFor)}
	}
	return p.known[key]
}

// ListStatus returns which machines of the resource group have no power, from one list of the subscription's run time status, which all its
// resource groups share.
func (d *Driver) ListStatus(ctx context.Context, scope driver.Scope) (map[string]driver.Status, error) {
	const operation = "VirtualMachines_ListAll"
	s, group, err := d.in(ctx, scope)
	if err != nil {
		return nil, err
	}
	list := d.power.of(scope, d.clock.Now())
	select {
	case list.turn <- struct{}{}:
		defer func() { <-list.turn }()
	case <-ctx.Done():
		return nil, driver.NewRefusedError(operation, "", errors.New("the list for another resource group did not end within the time limit"))
	}
	if now := d.clock.Now(); now.Sub(list.at) >= sharedFor {
		found, err := s.listPower(ctx)
		if err != nil {
			return nil, classify(operation, err)
		}
		list.at, list.found = now, found
	}
	out := make(map[string]driver.Status, len(list.found[group]))
	for name, status := range list.found[group] {
		status.AsOf = list.at // Another machine may have the name since.
		out[providerID(scope, name)] = status
	}
	return out, nil
}

// listPower lists the machines of the subscription that have no power.
func (s *subscription) listPower(ctx context.Context) (map[string]map[string]driver.Status, error) {
	found := map[string]map[string]driver.Status{}
	pager := s.machines.NewListAllPager(&armcompute.VirtualMachinesClientListAllOptions{StatusOnly: ptr("true")})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range page.Value {
			if m == nil || m.Properties == nil || m.Properties.InstanceView == nil {
				continue
			}
			v := fromStatuses(m.Properties.InstanceView.Statuses)
			state, known := powerStates[v.power]
			if !known || state == driverv1.InstanceRunning || state == driverv1.InstancePending {
				continue
			}
			group := groupOf(value(m.ID))
			if found[group] == nil {
				found[group] = map[string]driver.Status{}
			}
			found[group][nameOf(value(m.ID))] = driver.Status{
				State: state, StateCode: "PowerState/" + v.power,
				// Whether it is a Spot machine is not in this list: it counts for those alone.
				Interrupted: strings.HasPrefix(v.power, "dealloc"),
			}
		}
	}
	return found, nil
}
