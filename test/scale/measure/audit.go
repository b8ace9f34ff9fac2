package measure

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// AuditLog reads an API server's audit log in JSON lines as it grows.
type AuditLog struct {
	// Path is the file that kube-apiserver writes.
	Path string
	// Core and Target are the names of the users that a core is to the control cluster and to the
	// target cluster. The requests of others do not count.
	Core, Target string

	offset int64
	counts map[string]int
}

// auditEvent holds the fields of audit.k8s.io/v1 Event that are read.
type auditEvent struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// Names of requests in the counts.
const (
	// watchVerb begins the names of requests that open a watch.
	watchVerb = "watch "
	// probe is the name of the health probes of both clusters.
	probe = "health probe"
)

// probeOfControl is the request by which this core checks that the management cluster answers, once a minute for any number of Machines.
const probeOfControl = "get leases"

// probePaths are the requests by which the cores check that the target cluster answers.
var probePaths = []string{"/", "/version"}

// Counts reads what was added since the last call and returns the requests counted so far by verb
// and resource, such as "patch machines/status"; failed ones have the code behind it, such as
// "patch machines 409".
func (a *AuditLog) Counts() (map[string]int, error) {
	file, err := os.Open(a.Path)
	if err != nil {
		return nil, errors.Wrap(err, "opening the audit log")
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return nil, errors.Wrap(err, "seeking in the audit log")
	}
	if a.counts == nil {
		a.counts = map[string]int{}
	}
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			// What follows the last line end is still being written.
			return maps.Clone(a.counts), nil
		}
		if err != nil {
			return nil, errors.Wrap(err, "reading the audit log")
		}
		a.offset += int64(len(line))
		if err := a.count(line); err != nil {
			return nil, err
		}
	}
}

func (a *AuditLog) count(line []byte) error {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return errors.Wrap(err, "parsing a line of the audit log")
	}
	user := event.User.Username
	if user != a.Core && user != a.Target || !event.counts() {
		return nil
	}
	if user == a.Target && slices.Contains(probePaths, event.path()) || user == a.Core && strings.HasPrefix(event.name(), probeOfControl) {
		a.counts[probe]++
		return nil
	}
	a.counts[event.name()]++
	return nil
}

// counts picks one stage per request: watches when they begin, since they end phases later, and all
// others when they are answered.
func (e auditEvent) counts() bool {
	if e.Verb == strings.TrimSpace(watchVerb) {
		return e.Stage == "ResponseStarted"
	}
	return e.Stage == "ResponseComplete" || e.Stage == "Panic"
}

func (e auditEvent) path() string {
	path, _, _ := strings.Cut(e.RequestURI, "?")
	return path
}

func (e auditEvent) name() string {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	if resource == "" {
		resource = e.path()
	}
	if e.ResponseStatus.Code >= 400 {
		return fmt.Sprintf("%s %s %d", e.Verb, resource, e.ResponseStatus.Code)
	}
	return e.Verb + " " + resource
}
