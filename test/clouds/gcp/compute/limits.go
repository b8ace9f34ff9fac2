package compute

import (
	"net/http"
	"strings"
	"time"
)

// The groups of methods whose calls are counted together for each project and minute, see https://cloud.google.com/compute/api-quota.
const (
	GroupMutate        = "mutate"
	GroupRead          = "read"
	GroupList          = "list"
	GroupOperationRead = "operation read"
)

// window counts the calls of a minute.
type window struct {
	minute time.Time
	calls  int
}

func groupOf(m method) string {
	resource, verb, _ := strings.Cut(m.name, ".")
	switch {
	case resource == "zoneOperations" && verb != "list":
		return GroupOperationRead
	case verb == "list" || verb == "aggregatedList":
		return GroupList
	case verb == "get" || verb == "getFromFamily":
		return GroupRead
	}
	return GroupMutate
}

// limit refuses what is beyond the quota of the minute, which starts again with each minute of the clock.
func (s *Server) limit(m method, r *request) error {
	group := groupOf(m)
	quota, ok := s.options.RatePerMinute[group]
	if !ok {
		return nil
	}
	key := r.project.name + " " + group
	w := s.windows[key]
	if minute := r.now.Truncate(time.Minute); !w.minute.Equal(minute) {
		w = window{minute: minute}
	}
	w.calls++
	s.windows[key] = w
	if w.calls <= quota {
		return nil
	}
	e := fail(http.StatusForbidden, "rateLimitExceeded",
		"Quota exceeded for quota group '%s' and limit per minute of service 'compute.googleapis.com' for consumer 'project_number:%d'.",
		group, r.project.number)
	e.domain = "usageLimits"
	return e
}
