package compute

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// instance is a VM with its future states.
type instance struct {
	Instance

	project *project
	zone    string
	// visible is false while the operation that creates it has not begun.
	visible bool
	// listedAt is when lists begin to show it, unlistedAt when they cease to, after it has gone.
	listedAt, unlistedAt time.Time
	// nextAt is when its state changes next by itself; zero if it does not.
	nextAt time.Time
	// creation and deletion are the running operations, nil if there is none.
	creation, deletion *operation
	// failure is why the creation will fail.
	failure *Failure
	// afterStop is its state when it has stopped.
	afterStop string
	disks     []*disk
	// on is true while its machine has power.
	on bool
}

func (i *instance) path() string { return "zones/" + i.zone + "/instances/" + i.Name }

// key is the name of its machine.
func (i *instance) key() string { return machineKey(i.project.name, i.zone, i.Name) }

// machineKey is short: it is part of the paths of sockets in the machine, which may have 107 bytes.
func machineKey(project, zone, name string) string {
	sum := sha256.Sum256([]byte(project + "/" + zone + "/" + name))
	return hex.EncodeToString(sum[:8])
}

// instance is the one of a name, or of an ID, which the API accepts instead.
func (p *project) instance(zone, name string) *instance {
	for _, i := range p.instances {
		if i.zone == zone && (i.Name == name || strconv.FormatInt(int64(i.ID), 10) == name) {
			return i
		}
	}
	return nil
}

// instance is the one that the path names, as far as it is in answers.
func (r *request) instance() (*instance, error) {
	if i := r.project.instance(r.zone, r.PathValue("name")); i != nil && i.visible {
		return i, nil
	}
	return nil, notFound("projects/" + r.project.name + "/zones/" + r.zone + "/instances/" + r.PathValue("name"))
}

func insertInstance(s *Server, r *request) (any, error) {
	if o, err := s.replayed(r); o != nil || err != nil {
		return operationOf(o), err
	}
	i := &instance{project: r.project, zone: r.zone}
	if err := r.read(&i.Instance); err != nil {
		return nil, err
	}
	if err := s.check(i); err != nil {
		return nil, err
	}
	path := "projects/" + r.project.name + "/" + i.path()
	if r.project.instance(r.zone, i.Name) != nil {
		return nil, fail(http.StatusConflict, "alreadyExists", "The resource '%s' already exists", path)
	}
	if err := s.complete(i); err != nil {
		return nil, err
	}
	i.ID, i.Kind, i.SelfLink, i.Zone = s.nextID(), "compute#instance", link(path), link("projects/"+r.project.name+"/zones/"+r.zone)
	i.LabelFingerprint = fingerprint(i.Labels)
	i.creation = s.begin(r, "insert", "instances/"+i.Name, i.ID)
	i.creation.Status, i.nextAt = opPending, r.now.Add(s.delays.Pending)
	if failure := r.exchange.LaunchFailure(); failure != nil {
		i.failure = &Failure{Code: failure.Code, Message: failure.Message}
	}
	r.project.instances = append(r.project.instances, i)
	answer := i.creation.Operation
	s.wakeAt(i.nextAt)
	s.advance(r.now)
	return answer, nil
}

func operationOf(o *operation) any {
	if o == nil {
		return nil
	}
	return o.Operation
}

func getInstance(_ *Server, r *request) (any, error) {
	i, err := r.instance()
	if err != nil {
		return nil, err
	}
	return i.Instance, nil
}

func deleteInstance(s *Server, r *request) (any, error) {
	if o, err := s.replayed(r); o != nil || err != nil {
		return operationOf(o), err
	}
	i := r.project.instance(r.zone, r.PathValue("name"))
	if i != nil && !i.visible {
		return nil, fail(http.StatusBadRequest, "resourceNotReady", "The resource 'projects/%s/%s' is not ready", r.project.name, i.path())
	}
	i, err := r.instance()
	if err != nil {
		return nil, err
	}
	if i.DeletionProtection {
		return nil, fail(http.StatusBadRequest, "invalidResourceUsage",
			"Invalid resource usage: 'Resource cannot be deleted if it's protected against deletion. Update the deletion protection to false.'.")
	}
	if i.deletion != nil {
		return i.deletion.Operation, nil
	}
	if failure := r.exchange.LaunchFailure(); failure != nil {
		return s.failLater(r, "delete", "instances/"+i.Name, i.ID, failure), nil
	}
	i.creation.done(r.now, &Failure{Code: "OPERATION_CANCELED_BY_USER", Message: "Operation was canceled by user ''."})
	i.creation = nil
	i.deletion = s.begin(r, "delete", "instances/"+i.Name, i.ID)
	answer := i.deletion.Operation
	s.stop(i, r.now)
	s.advance(r.now)
	return answer, nil
}

// stop begins to switch an instance off.
func (s *Server) stop(i *instance, now time.Time) {
	i.Status, i.nextAt = "STOPPING", now.Add(s.delays.Stopping)
	s.powerOff(i)
	s.wakeAt(i.nextAt)
}

func (s *Server) powerOff(i *instance) {
	if i.on {
		i.on = false
		s.power.Stop(i.key())
	}
}

func setInstanceLabels(s *Server, r *request) (any, error) {
	i, err := r.instance()
	if err != nil {
		return nil, err
	}
	return s.setLabels(r, &i.resource, "instances")
}

// setLabels replaces the labels of something whose fingerprint the caller knows.
func (s *Server) setLabels(r *request, of *resource, collection string) (any, error) {
	if o, err := s.replayed(r); o != nil || err != nil {
		return operationOf(o), err
	}
	var wanted struct {
		Labels           map[string]string `json:"labels"`
		LabelFingerprint string            `json:"labelFingerprint"`
	}
	if err := r.read(&wanted); err != nil {
		return nil, err
	}
	if wanted.LabelFingerprint != of.LabelFingerprint {
		return nil, fail(http.StatusPreconditionFailed, "conditionNotMet", "Labels fingerprint either invalid or resource labels have changed")
	}
	if err := checkLabels("labels", wanted.Labels); err != nil {
		return nil, err
	}
	of.Labels, of.LabelFingerprint = wanted.Labels, fingerprint(wanted.Labels)
	o := s.begin(r, "setLabels", collection+"/"+of.Name, of.ID)
	answer := o.Operation
	o.done(r.now, nil)
	return answer, nil
}

func setDeletionProtection(s *Server, r *request) (any, error) {
	i, err := r.instance()
	if err != nil {
		return nil, err
	}
	i.DeletionProtection = !strings.EqualFold(r.URL.Query().Get("deletionProtection"), "false")
	o := s.begin(r, "setDeletionProtection", "instances/"+i.Name, i.ID)
	answer := o.Operation
	o.done(r.now, nil)
	return answer, nil
}

// remove removes an instance from every answer, with the disks that are deleted with it.
func (s *Server) remove(i *instance) {
	s.powerOff(i)
	i.nextAt = time.Time{}
	if s.delays.Listing > 0 && i.visible {
		i.unlistedAt = s.clock.Now().Add(s.delays.Listing)
		i.project.gone = append(i.project.gone, i)
	}
	i.project.instances = slices.DeleteFunc(i.project.instances, func(other *instance) bool { return other == i })
	for n, d := range i.disks {
		d.Users = nil
		if i.Disks[n].AutoDelete {
			i.project.disks = slices.DeleteFunc(i.project.disks, func(other *disk) bool { return other == d })
		}
	}
	for _, nic := range i.NetworkInterfaces {
		delete(i.project.addresses[relative(nic.Subnetwork)], nic.NetworkIP)
	}
}

// KeepDisks has the disks of an instance outlive it, as a user may set it.
func (s *Server) KeepDisks(project, zone, name string) error {
	return s.change(project, zone, name, func(i *instance, _ time.Time) {
		for n := range i.Disks {
			i.Disks[n].AutoDelete = false
		}
	})
}
