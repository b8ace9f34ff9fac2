package workers

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// idlePolls is how many polls there are between two checks of Eventually while nothing is written.
const idlePolls = 8

// activity counts the writes of a package's tests and managers in each namespace. What a test waits for nearly always comes with a write:
// without one it need not read everything at each PollInterval.
type activity struct {
	mu     sync.Mutex
	writes map[string]int
}

// watch counts the writes of clients of a config.
func (a *activity) watch(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{a, next} })
}

type counting struct {
	activity *activity
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if _, after, found := strings.Cut(request.URL.Path, "/namespaces/"); found && request.Method != http.MethodGet {
		namespace, _, _ := strings.Cut(after, "/")
		c.activity.mu.Lock()
		defer c.activity.mu.Unlock()
		c.activity.writes[namespace]++
	}
	return response, err
}

// in is how many writes there have been in a namespace so far.
func (a *activity) in(namespace string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writes[namespace]
}

// await returns how many writes there have been in a namespace, once that differs from what was seen, something else is new, or
// nothing has been written for a while.
func (a *activity) await(namespace string, seen int, isNew func() bool) int {
	for range idlePolls {
		if a.in(namespace) != seen || isNew() {
			break
		}
		time.Sleep(PollInterval)
	}
	return a.in(namespace)
}
