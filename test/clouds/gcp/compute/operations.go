package compute

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"millwright.dev/test/clouds/simulator"
)

// operation is an operation of a zone.
type operation struct {
	Operation

	zone string
	// endedAt is zero while it runs.
	endedAt time.Time
	// failsAt is when it fails, with failure, and without effect; zero if it does not.
	failsAt time.Time
	failure *Failure
}

// The states of operations.
const (
	opPending = "PENDING"
	opRunning = "RUNNING"
	opDone    = "DONE"
)

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000-07:00") }

// begin adds an operation about something in the zone of a request.
func (s *Server) begin(r *request, kind, target string, targetID Int64) *operation {
	o := s.newOperation(r.project, r.zone, kind, target, targetID, r.now)
	o.User, o.ClientOperationID = "caller@millwright.example", r.URL.Query().Get("requestId")
	return o
}

func (s *Server) newOperation(p *project, zone, kind, target string, targetID Int64, now time.Time) *operation {
	id := s.nextID()
	name := fmt.Sprintf("operation-%d-%x", now.UnixMilli(), int64(id))
	path := "projects/" + p.name + "/zones/" + zone
	o := &operation{zone: zone, Operation: Operation{
		Kind: "compute#operation", ID: id, Name: name, Zone: link(path), OperationType: kind, Status: opRunning,
		TargetLink: link(path + "/" + target), TargetID: targetID, SelfLink: link(path + "/operations/" + name),
		InsertTime: timestamp(now), StartTime: timestamp(now),
	}}
	p.operations = append(p.operations, o)
	return o
}

// done ends an operation, with a failure or without.
func (o *operation) done(now time.Time, failure *Failure) {
	if o == nil || o.Status == opDone {
		return
	}
	o.Status, o.Progress, o.EndTime, o.endedAt = opDone, 100, timestamp(now), now
	if failure == nil {
		return
	}
	message := failure.Message
	if message == "" {
		message = "The operation has failed: " + failure.Code
	}
	o.Error = &OperationError{Errors: []OperationErrorItem{{Code: failure.Code, Message: message, ErrorDetails: failure.details}}}
	o.HTTPErrorStatusCode = operationStatus(failure.Code)
	o.HTTPErrorMessage = strings.ToUpper(http.StatusText(o.HTTPErrorStatusCode))
}

func operationStatus(code string) int {
	switch {
	case strings.Contains(code, "RESOURCE_POOL_EXHAUSTED"):
		return http.StatusServiceUnavailable
	case strings.Contains(code, "QUOTA"), strings.Contains(code, "PERMISSION"):
		return http.StatusForbidden
	case strings.Contains(code, "NOT_FOUND"):
		return http.StatusNotFound
	case strings.Contains(code, "ALREADY_EXISTS"):
		return http.StatusConflict
	}
	return http.StatusBadRequest
}

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// replayed returns the operation that an earlier request with the same requestId has begun, if there is one.
func (s *Server) replayed(r *request) (*operation, error) {
	id := r.URL.Query().Get("requestId")
	if id == "" {
		return nil, nil
	}
	if !uuidPattern.MatchString(id) || strings.Trim(id, "0-") == "" {
		return nil, invalid("requestId", id, "Must be a valid UUID that is not zero.")
	}
	for _, o := range r.project.operations {
		if o.ClientOperationID == id && o.zone == r.zone {
			return o, nil
		}
	}
	return nil, nil
}

func (r *request) operation() (*operation, error) {
	name := r.PathValue("name")
	for _, o := range r.project.operations {
		if o.zone == r.zone && (o.Name == name || fmt.Sprint(int64(o.ID)) == name) {
			return o, nil
		}
	}
	return nil, notFound("projects/" + r.project.name + "/zones/" + r.zone + "/operations/" + name)
}

func getOperation(_ *Server, r *request) (any, error) {
	o, err := r.operation()
	if err != nil {
		return nil, err
	}
	return o.Operation, nil
}

// maxWait is how long zoneOperations.wait waits.
const maxWait = 2 * time.Minute

// waitOperation waits until the operation has ended, for two minutes at most, without the server's lock.
func waitOperation(s *Server, r *request) (any, error) {
	until := r.now.Add(maxWait)
	for {
		o, err := r.operation()
		if err != nil {
			return nil, err
		}
		now := s.clock.Now()
		if o.Status == opDone || !now.Before(until) {
			return o.Operation, nil
		}
		next := until
		if change := s.nextChange(); !change.IsZero() && change.Before(next) {
			next = change
		}
		timer := s.clock.After(next.Sub(now))
		s.mu.Unlock()
		select {
		case <-timer:
		case <-r.Context().Done():
		}
		s.mu.Lock()
		if r.Context().Err() != nil {
			return nil, fail(http.StatusServiceUnavailable, "backendError", "The client has gone.")
		}
		s.advance(s.clock.Now())
	}
}

// failLater begins an operation without effect, which fails after the time that a deletion takes.
func (s *Server) failLater(r *request, kind, target string, targetID Int64, failure *simulator.Failure) Operation {
	o := s.begin(r, kind, target, targetID)
	o.failsAt, o.failure = r.now.Add(s.delays.Stopping), &Failure{Code: failure.Code, Message: failure.Message}
	s.wakeAt(o.failsAt)
	return o.Operation
}

// failOperations ends the operations that were to fail by now.
func (p *project) failOperations(now time.Time) {
	for _, o := range p.operations {
		if !o.failsAt.IsZero() && !now.Before(o.failsAt) {
			o.done(o.failsAt, o.failure)
			o.failsAt = time.Time{}
		}
	}
}

// forgetOperations drops what ended long ago.
func (s *Server) forgetOperations(p *project, now time.Time) {
	p.operations = slices.DeleteFunc(p.operations, func(o *operation) bool {
		return !o.endedAt.IsZero() && now.Sub(o.endedAt) > s.delays.Forget
	})
}
