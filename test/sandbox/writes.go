package sandbox

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// auditEvent is what is read of a line of an API server's audit log.
type auditEvent struct {
	UserAgent string `json:"userAgent"`
	Verb      string `json:"verb"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	RequestURI string    `json:"requestURI"`
	Received   time.Time `json:"requestReceivedTimestamp"`
	ObjectRef  struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
}

// Writes counts what a manager has written since the sandbox started, into either cluster and whether
// it succeeded or not, by verb and resource such as "patch machines/status". Events are left out.
func (s *Sandbox) Writes(m *Manager) (map[string]int, error) {
	counts := map[string]int{}
	for _, c := range s.clusters() {
		if err := countWrites(c.AuditLog(), m.agent(), counts); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// agent is the user agent of the manager, up to the version.
func (m *Manager) agent() string { return "millwright-" + m.Name }

func countWrites(path, agent string, counts map[string]int) error {
	return readAudit(path, func(event auditEvent) {
		if name, ok := event.write(agent); ok {
			counts[name]++
		}
	})
}

// readAudit passes each line of an audit log to use.
func readAudit(path string, use func(auditEvent)) error {
	file, err := os.Open(path)
	if err != nil {
		return errors.Wrap(err, "opening an audit log")
	}
	defer func() { _ = file.Close() }()
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			// What follows the last line end is still being written.
			return nil
		}
		if err != nil {
			return errors.Wrap(err, "reading an audit log")
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return errors.Wrap(err, "parsing a line of an audit log")
		}
		use(event)
	}
}

// write names the write, if it is one by the agent that counts.
func (e auditEvent) write(agent string) (string, bool) {
	by, _, _ := strings.Cut(e.UserAgent, "/")
	if by != agent || reads(e.Verb) || e.ObjectRef.Resource == "" || e.ObjectRef.Resource == "events" {
		return "", false
	}
	name := e.Verb + " " + e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		name += "/" + e.ObjectRef.Subresource
	}
	return name, true
}

func reads(verb string) bool { return slices.Contains([]string{"get", "list"}, verb) }
