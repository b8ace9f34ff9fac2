package cloud

import (
	"fmt"
	"net/http"
	"time"
)

type part struct {
	Part
	kind string
	// uses is the address of an interface.
	uses *part
}

func (p *part) remove(a *account) { delete(a.parts[p.kind], key(p.Zone, p.Name)) }

// order in which an operation creates the parts of a machine.
var order = []string{Addresses, Interfaces, Disks}

// makePart creates the next part of a machine, or, when it has all, the machine itself.
func (c *Cloud) makePart(a *account, m *machine, at time.Time) {
	o, made := m.create, len(m.parts)
	if o.fault.Fail != nil && made >= min(o.fault.Parts, len(order)) {
		c.failCreation(a, m, at, *o.fault.Fail)
		return
	}
	if made == len(order) {
		c.provision(a, m, at)
		return
	}
	kind := order[made]
	if kind == Addresses {
		if failure := a.addressFailure(c, m); failure != nil {
			c.failCreation(a, m, at, *failure)
			return
		}
	}
	p := &part{kind: kind, Part: Part{
		Zone: m.Zone, Name: c.next(m.Name + "-" + kind[:3]), Labels: m.Labels, UsedBy: m.Name, CreatedAt: at,
	}}
	a.parts[kind][key(p.Zone, p.Name)] = p
	m.parts = append(m.parts, p)
	switch kind {
	case Addresses:
		p.Address = fmt.Sprintf("198.51.%d.%d", 100+c.sequence/250%100, 1+c.sequence%250)
	case Interfaces:
		p.Address = fmt.Sprintf("10.%d.%d.%d", c.sequence/62500%250, c.sequence/250%250, 1+c.sequence%250)
		p.uses = m.parts[0]
		p.uses.UsedBy = p.Name
	}
	c.step(o, at, c.options.Delays.Step, func(at time.Time) { c.makePart(a, m, at) })
}

// addressFailure is why there is no address for a machine, or nil.
func (a *account) addressFailure(c *Cloud, m *machine) *Failure {
	if a.quotas.Addresses > 0 && len(a.parts[Addresses]) >= a.quotas.Addresses {
		return &Failure{Code: CodeQuotaExceeded, Message: fmt.Sprintf("the account may have %d addresses", a.quotas.Addresses)}
	}
	if c.short.noAddresses[m.Zone] {
		return &Failure{Code: CodeAddressesExhausted, Message: "zone " + m.Zone + " has no address left"}
	}
	return nil
}

// provision ends the creation of a machine that has all of its parts, if the zone has capacity.
func (c *Cloud) provision(a *account, m *machine, at time.Time) {
	if !c.short.take(m) {
		c.failCreation(a, m, at, Failure{
			Code: CodeZoneExhausted, Message: fmt.Sprintf("zone %s has no capacity for machine type %s now", m.Zone, m.MachineType),
		})
		return
	}
	m.State, m.PublicAddress, m.PrivateAddress = StateStarting, m.parts[0].Address, m.parts[1].Address
	c.end(a, m.create, at, nil)
	c.at(at.Add(c.options.Delays.Start), func(time.Time) {
		if m.State == StateStarting {
			m.State, m.poweredOn = StateRunning, true
		}
	})
}

// failCreation ends the operation that creates a machine. Its parts stay; the machine stays only if the fault says so.
func (c *Cloud) failCreation(a *account, m *machine, at time.Time, failure Failure) {
	c.end(a, m.create, at, &failure)
	if m.create.fault.Keep {
		m.State, m.Failure = StateFailed, &failure
		return
	}
	delete(a.machines, key(m.Zone, m.Name))
	a.history.ended(m.initialLabels)
	for _, p := range m.parts {
		if p.UsedBy == m.Name {
			p.UsedBy = ""
		}
	}
}

// deletePart begins the deletion of a disk, an interface or an address that nothing uses.
func (c *Cloud) deletePart(a *account, r request) reply {
	p, ok := a.parts[r.kind][key(r.zone, r.name)]
	switch {
	case !ok:
		return missing(r.kind, r)
	case p.UsedBy != "":
		return refuse(http.StatusConflict, CodeResourceInUse, fmt.Sprintf("%s is used by %s", r.name, p.UsedBy))
	}
	p.Deleting = true
	o := c.begin(a, r.call, p.Zone, p.Name, p.Labels)
	o.fault = r.operation
	c.step(o, c.now(), c.options.Delays.Delete, func(at time.Time) {
		if failure := o.fault.Fail; failure != nil {
			p.Deleting = false
			c.end(a, o, at, failure)
			return
		}
		p.remove(a)
		if p.uses != nil {
			p.uses.UsedBy = ""
		}
		c.end(a, o, at, nil)
	})
	return accepted(o)
}
