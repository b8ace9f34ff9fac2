package sandbox

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// hotLoop is how often a manager may send the same request within a second. No test needs more than ten; a loop that does
// not wait between its attempts reaches hundreds.
const hotLoop = 30

// sameRequest is a request of a manager about the same object, in one second.
type sameRequest struct {
	log, agent, verb, uri string
	second                time.Time
}

// HotLoops returns what managers have sent without a pause, from the audit logs of API servers below a directory: a line for each request,
// with its count in its worst second. A request that creates something is left out: it is another one each time.
func HotLoops(directory string) ([]string, error) {
	counts := map[sameRequest]int{}
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "audit.log" {
			return err
		}
		return readAudit(path, func(event auditEvent) {
			agent, _, _ := strings.Cut(event.UserAgent, "/")
			if event.Verb == "create" || !strings.HasPrefix(agent, "millwright-") {
				return
			}
			uri := event.RequestURI
			if event.Verb == "watch" {
				uri, _, _ = strings.Cut(uri, "?") // Each begins at another version, and has a limit of its own.
			}
			counts[sameRequest{path, agent, event.Verb, uri, event.Received.Truncate(time.Second)}]++
		})
	})
	worst := map[sameRequest]int{}
	for request, count := range counts {
		if count > hotLoop {
			request.second = time.Time{}
			worst[request] = max(worst[request], count)
		}
	}
	var lines []string
	for r, count := range worst {
		lines = append(lines, fmt.Sprintf("%s: %s %s: %d times within a second, see %s", r.agent, r.verb, r.uri, count, r.log))
	}
	slices.Sort(lines)
	return lines, err
}
