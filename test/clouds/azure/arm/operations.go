package arm

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// operation is the operation behind a long-running call, see
// https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations.
type operation struct {
	id       string
	began    time.Time
	ended    time.Time
	failure  *errorBody
	provider string
}

// pollAfter is how long a caller is asked to wait before it looks again.
const pollAfter = 10 * time.Second

// begin creates an operation and returns the headers that lead to it.
func (s *Server) begin(in *request, provider string) (*operation, map[string]string) {
	o := &operation{id: s.ids.uuid(), began: s.clock.Now(), provider: provider}
	s.operations[o.id] = o
	endpoint := s.endpoint
	if s.options.OperationHost != "" {
		endpoint = "https://" + s.options.OperationHost
	}
	base := endpoint + "/subscriptions/" + in.subscription + "/providers/" + provider + "/locations/" + s.options.Catalog.Location +
		"/operations/" + o.id
	query := "?api-version=" + in.http.URL.Query().Get("api-version")
	return o, map[string]string{
		"Azure-AsyncOperation": base + query, "Location": base + query + "&monitor=true", "Retry-After": strconv.Itoa(int(pollAfter.Seconds())),
	}
}

func (s *Server) finish(o *operation, failure *errorBody) {
	if o != nil && o.ended.IsZero() {
		o.ended, o.failure = s.clock.Now(), failure
	}
}

type operationBody struct {
	Name      string     `json:"name"`
	StartTime string     `json:"startTime"`
	EndTime   string     `json:"endTime,omitempty"`
	Status    string     `json:"status"`
	Error     *errorBody `json:"error,omitempty"`
}

// getOperation answers both kinds of polling.
func getOperation(s *Server, in *request) (reply, error) {
	path := in.http.URL.Path
	o := s.operations[path[strings.LastIndex(path, "/")+1:]]
	if o == nil {
		return reply{}, fail(http.StatusNotFound, "NotFound", "The entity was not found.")
	}
	body := operationBody{Name: o.id, StartTime: stamp(o.began), Status: "InProgress"}
	wait := map[string]string{"Retry-After": strconv.Itoa(int(pollAfter.Seconds()))}
	if in.http.URL.Query().Get("monitor") == "true" {
		switch {
		case o.ended.IsZero():
			wait["Location"] = s.endpoint + in.http.URL.RequestURI()
			return reply{status: http.StatusAccepted, headers: wait}, nil
		case o.failure != nil:
			return reply{}, fail(http.StatusConflict, o.failure.Code, "%s", o.failure.Message)
		}
		return reply{status: http.StatusNoContent}, nil
	}
	if o.ended.IsZero() {
		return reply{status: http.StatusOK, headers: wait, body: body}, nil
	}
	body.EndTime, body.Status, body.Error = stamp(o.ended), "Succeeded", o.failure
	if o.failure != nil {
		body.Status = "Failed"
	}
	return ok(body)
}
