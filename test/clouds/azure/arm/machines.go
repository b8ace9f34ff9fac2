package arm

import (
	"net/http"
	"strings"
)

const vmType = compute + "/virtualMachines"

func (s *Server) machine(in *request) (*machine, error) {
	m := s.machines[key(resourceID(in.subscription, in.group, compute, "virtualMachines", in.name))]
	if m == nil {
		return nil, notFound(in, vmType)
	}
	return m, nil
}

func getMachine(s *Server, in *request) (reply, error) {
	m, err := s.machine(in)
	if err != nil {
		return reply{}, err
	}
	expand := in.http.URL.Query().Get("$expand")
	body := s.show(m, strings.Contains(expand, "instanceView"))
	if strings.Contains(expand, "userData") {
		p := body.Properties.(vmProperties)
		p.UserData = m.document.Properties.UserData
		body.Properties = p
	}
	return ok(body)
}

func getInstanceView(s *Server, in *request) (reply, error) {
	m, err := s.machine(in)
	if err != nil {
		return reply{}, err
	}
	return ok(s.view(m))
}

// patchMachine changes the tags; nothing else of it is simulated.
func patchMachine(s *Server, in *request) (reply, error) {
	var body tagsBody
	if err := in.decode(&body); err != nil {
		return reply{}, err
	}
	m, err := s.machine(in)
	if err != nil {
		return reply{}, err
	}
	if err := validTags(body.Tags); err != nil {
		return reply{}, err
	}
	if m.state == stateDeleting {
		return reply{}, fail(http.StatusConflict, "OperationNotAllowed",
			"Operation 'update' is not allowed on VM '%s' since the VM is marked for deletion.", m.name)
	}
	if body.Tags != nil {
		m.tags = body.Tags
	}
	m.etag = `W/"` + s.ids.uuid() + `"`
	return ok(s.show(m, false))
}

// deleteMachine begins the deletion of a machine; 204 if there is none.
func deleteMachine(s *Server, in *request) (reply, error) {
	m, err := s.machine(in)
	if err != nil {
		return reply{status: http.StatusNoContent}, nil //nolint:nilerr // That is the answer.
	}
	operation, headers := s.begin(in, compute)
	if m.ending == nil {
		m.ending = operation
		m.endFailure = lateFailure(in)
	} else {
		s.finish(operation, nil)
	}
	s.end(m)
	return reply{status: http.StatusAccepted, headers: headers}, nil
}

// lateFailure is how a fault has an accepted call fail later; nil if it succeeds.
func lateFailure(in *request) *errorBody {
	failure := in.exchange.LaunchFailure()
	if failure == nil {
		return nil
	}
	return &errorBody{failure.Code, failure.Message}
}

// changePower is a handler that changes the power of a machine.
func changePower(during, after string) func(*Server, *request) (reply, error) {
	return func(s *Server, in *request) (reply, error) {
		m, err := s.machine(in)
		if err != nil {
			return reply{}, err
		}
		if m.state != stateSucceeded {
			return reply{}, fail(http.StatusConflict, "OperationNotAllowed", "Operation is not allowed on VM '%s' in provisioning state %s.",
				m.name, m.state)
		}
		operation, headers := s.begin(in, compute)
		s.switchTo(m, during, after)
		s.finish(operation, nil)
		return reply{status: http.StatusAccepted, headers: headers}, nil
	}
}

// evictMachine reclaims a Spot machine.
func evictMachine(s *Server, in *request) (reply, error) {
	m, err := s.machine(in)
	if err != nil {
		return reply{}, err
	}
	if m.document.Properties.Priority != "Spot" {
		return reply{}, fail(http.StatusConflict, "OperationNotAllowed",
			"The operation simulateEviction is allowed on Azure Spot Virtual Machines only.")
	}
	s.evict(m)
	return reply{status: http.StatusNoContent}, nil
}

func (s *Server) evict(m *machine) {
	m.evicted = true
	if m.document.Properties.EvictionPolicy == "Delete" {
		s.end(m)
		return
	}
	s.switchTo(m, powerDeallocating, powerDeallocated)
}

// isListed is false of what was created so lately that lists lack it.
func (s *Server) isListed(n *named) bool { return !s.clock.Now().Before(n.created.Add(s.delays.List)) }

// listMachines lists a resource group or a subscription. With statusOnly=true, which only the latter has, items have only their run time
// status.
func listMachines(s *Server, in *request) (reply, error) {
	if in.http.URL.Query().Get("$expand") != "" {
		return reply{}, badRequest("$expand=instanceView needs a $filter, which is not simulated.")
	}
	statusOnly := in.group == "" && strings.EqualFold(in.http.URL.Query().Get("statusOnly"), "true")
	shows := func(m *machine) bool { return m.in(in.subscription, in.group) && s.isListed(&m.named) }
	items := sorted(s.machines, shows, func(m *machine) int { return m.sequence })
	return page(s, in, items, func(m *machine) int { return m.sequence }, func(m *machine) any {
		if statusOnly {
			return shown{ID: m.id, Name: m.name, Type: vmType, Location: s.options.Catalog.Location,
				Properties: map[string]any{"vmId": m.vmID, "instanceView": s.view(m)}}
		}
		return s.show(m, false)
	})
}
