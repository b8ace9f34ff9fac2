package cloud

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// Limits of the API on requests.
const (
	maxUserData   = 32 * 1024
	maxLabels     = 64
	maxLabelValue = 64
)

var (
	plainName  = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)
	plainLabel = regexp.MustCompile(`^[a-z0-9_-]*$`)
)

type machine struct {
	Machine
	create *operation
	// before is the state before the running deletion.
	before string
	// initialLabels are the labels that it was created with.
	initialLabels map[string]string
	parts         []*part
	placed        bool
	poweredOn     bool
	protected     bool
	// powerFailure is why the machine has no power although it was not stopped.
	powerFailure *Failure
}

// createMachine begins the creation of a machine unless there is something of its name.
func (c *Cloud) createMachine(a *account, r request) reply {
	in := CreateMachine{}
	if err := json.Unmarshal(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, CodeInvalidArgument, "the body is not understood: "+err.Error())
	}
	if known, ok := a.requests[in.RequestID]; ok && in.RequestID != "" {
		if known.Zone != r.zone || known.Name != r.name || known.parameters != string(r.body) {
			return refuse(http.StatusConflict, CodeRequestIDReused, "the request ID was used with other parameters by "+known.ID)
		}
		return accepted(known)
	}
	if failed := c.validate(a, r, in); failed != nil {
		return *failed
	}
	if taken, ok := a.machines[key(r.zone, r.name)]; ok {
		return refuse(http.StatusConflict, CodeNameTaken, fmt.Sprintf("zone %s has a machine %s, which is %s", r.zone, r.name, taken.State))
	}
	if a.quotas.Machines > 0 && len(a.machines) >= a.quotas.Machines {
		return refuse(http.StatusForbidden, CodeQuotaExceeded, fmt.Sprintf("the account may have %d machines", a.quotas.Machines))
	}
	o := c.begin(a, r.call, r.zone, r.name, in.Labels)
	o.parameters, o.requestID, o.fault, o.MachineType, o.Spot = string(r.body), in.RequestID, r.operation, in.MachineType, in.Spot
	if in.RequestID != "" {
		a.requests[in.RequestID] = o
	}
	m := &machine{create: o, Machine: Machine{
		ID: c.next("m"), Account: a.name, Zone: r.zone, Name: r.name, MachineType: in.MachineType, Image: in.Image, Spot: in.Spot,
		Labels: in.Labels, State: StateCreating, CreatedAt: c.now(), Operation: o.ID,
	}}
	a.machines[key(m.Zone, m.Name)] = m
	a.history.began(m.Labels)
	m.initialLabels = m.Labels
	c.step(o, c.now(), c.options.Delays.Step, func(at time.Time) { c.makePart(a, m, at) })
	return accepted(o)
}

// validate returns the refusal of a request that can never be right, or nil.
func (c *Cloud) validate(a *account, r request, in CreateMachine) *reply {
	t, known := c.typeOf(in.MachineType)
	no := func(status int, code, format string, args ...any) *reply {
		refused := refuse(status, code, fmt.Sprintf(format, args...))
		return &refused
	}
	switch {
	case !slices.Contains(c.options.Zones, r.zone):
		return no(http.StatusNotFound, CodeZoneNotFound, "account %s has no zone %s", a.name, r.zone)
	case !plainName.MatchString(r.name):
		return no(http.StatusBadRequest, CodeInvalidArgument, "a name has 1 to 40 lower-case letters, digits and -, not %q", r.name)
	case !known:
		return no(http.StatusBadRequest, CodeTypeNotFound, "there is no machine type %s", in.MachineType)
	case len(t.Zones) > 0 && !slices.Contains(t.Zones, r.zone):
		return no(http.StatusBadRequest, CodeTypeNotInZone, "zone %s does not have machine type %s", r.zone, in.MachineType)
	case !slices.Contains(c.options.Images, in.Image):
		return no(http.StatusNotFound, CodeImageNotFound, "there is no image %s", in.Image)
	case len(in.UserData) > maxUserData:
		return no(http.StatusBadRequest, CodeUserDataTooLarge, "user data has %d bytes, at most %d are taken", len(in.UserData), maxUserData)
	}
	return checkLabels(in.Labels)
}

func (c *Cloud) getMachine(a *account, r request) reply {
	m, ok := a.machines[key(r.zone, r.name)]
	if !ok {
		return missing("machine", r)
	}
	return answer(http.StatusOK, m.Machine)
}

// deleteMachine begins the deletion of a machine; the operation that creates it, if it is running, is cancelled.
func (c *Cloud) deleteMachine(a *account, r request) reply {
	m, ok := a.machines[key(r.zone, r.name)]
	switch {
	case !ok:
		return missing("machine", r)
	case m.protected:
		return refuse(http.StatusConflict, CodeDeletionProtected, "machine "+r.name+" is protected against deletion")
	}
	c.end(a, m.create, c.now(), &Failure{Code: CodeCancelled, Message: "the machine was deleted"})
	if m.State != StateDeleting { // Else another deletion is running.
		m.before = m.State
	}
	before := m.before
	m.State = StateDeleting
	o := c.begin(a, r.call, m.Zone, m.Name, m.Labels)
	o.fault = r.operation
	c.step(o, c.now(), c.options.Delays.Delete, func(at time.Time) {
		switch {
		case o.fault.Fail == nil:
			c.remove(a, m)
		case before == StateCreating:
			m.State, m.Failure = StateFailed, m.create.Failure
		default:
			m.State = before
		}
		c.end(a, o, at, o.fault.Fail)
	})
	return accepted(o)
}

// remove removes a machine with its disk; interface and address stay.
func (c *Cloud) remove(a *account, m *machine) {
	if a.machines[key(m.Zone, m.Name)] != m {
		return
	}
	delete(a.machines, key(m.Zone, m.Name))
	a.history.ended(m.initialLabels)
	c.short.release(m)
	for _, p := range m.parts {
		if p.kind == Disks {
			p.remove(a)
		} else if p.UsedBy == m.Name {
			p.UsedBy = ""
		}
	}
}
