package behaviour_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/version"
	"millwright.dev/test/testenv"
)

// request is one to the API server, with its body.
type request struct{ method, path, query, body string }

func requestOf(original *http.Request) request {
	r := request{method: original.Method, path: original.URL.Path, query: original.URL.RawQuery}
	if original.GetBody != nil {
		if body, err := original.GetBody(); err == nil {
			sent, _ := io.ReadAll(body)
			r.body = string(sent)
		}
	}
	return r
}

func (r request) is(method, path string) bool {
	return r.method == method && strings.HasSuffix(r.path, path) && r.query == ""
}

// on reports whether the request is about an object of a kind, by the plural of its name.
func (r request) on(method, plural string) bool {
	parts := strings.Split(r.path, "/")
	return r.method == method && len(parts) > 1 && parts[len(parts)-2] == plural
}

func (r request) bares() bool {
	return r.method == http.MethodPatch && strings.Contains(r.body, `"finalizers":null`)
}

// late interrupts a run while a request is on its way. If the request is given up for it, or its answer is lost, the API server gets it all
// the same, but later: such a request has been sent, and nothing takes it back.
type late struct {
	next      http.RoundTripper
	interrupt func()
	// lost is true where the connection breaks, so that nobody knows whether the request has come.
	lost bool
	// which request it is, how many of the kind come before it, and which one the API server has done, or has not seen yet, when it
	// comes to this one; at once if it is nil.
	which         func(request) bool
	skip          int
	after, before func(request) bool

	mu      sync.Mutex
	done    bool
	pending *http.Request
}

func (l *late) RoundTrip(original *http.Request) (*http.Response, error) {
	r := requestOf(original)
	if l.begins(r) {
		l.interrupt()
		if l.lost || original.Context().Err() != nil {
			l.keep(original, r.body)
			if l.after == nil && l.before == nil {
				l.apply()
			}
			return nil, errors.New("the connection was lost")
		}
		return l.next.RoundTrip(original)
	}
	if l.before != nil && l.before(r) {
		l.apply()
	}
	response, err := l.next.RoundTrip(original)
	if l.after != nil && l.after(r) {
		l.apply()
	}
	return response, err
}

// begins reports whether this is the request on its way.
func (l *late) begins(r request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done || !l.which(r) {
		return false
	}
	l.skip--
	l.done = l.skip < 0
	return l.done
}

func (l *late) keep(original *http.Request, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = original.Clone(context.WithoutCancel(original.Context()))
	l.pending.Body = io.NopCloser(bytes.NewBufferString(body))
}

// apply brings the request to the API server.
func (l *late) apply() {
	l.mu.Lock()
	pending := l.pending
	l.pending = nil
	l.mu.Unlock()
	if pending == nil {
		return
	}
	if response, err := l.next.RoundTrip(pending); err == nil {
		_ = response.Body.Close()
	}
}

// moments are those of a move in which a run must not lose sight of its object.
var moments = map[string]func() *late{
	"finalizers are taken off after the object was looked at": func() *late {
		return &late{which: request.bares, before: func(r request) bool { return r.on(http.MethodDelete, "standinmachines") }}
	},
	"the object is deleted while its finalizers are put back": func() *late {
		return &late{
			which:  func(r request) bool { return r.on(http.MethodDelete, "standinmachines") },
			before: func(r request) bool { return r.on(http.MethodPatch, "standinmachines") && !r.bares() },
		}
	},
	"the object is deleted after its finalizers were put back": func() *late {
		return &late{
			which: func(r request) bool { return r.on(http.MethodDelete, "standinmachines") },
			after: func(r request) bool { return r.on(http.MethodPatch, "standinmachines") && !r.bares() },
		}
	},
	"the Machine is deleted": func() *late { return &late{which: func(r request) bool { return r.on(http.MethodDelete, "machines") }} },
	"the Machine is recreated": func() *late {
		return &late{which: func(r request) bool { return r.is(http.MethodPost, "/machines") }, skip: 1}
	},
	"the object is recreated": func() *late {
		return &late{which: func(r request) bool { return r.is(http.MethodPost, "/standinmachines") }, skip: 1}
	},
	"the object is made, at all": func() *late {
		return &late{
			which: func(r request) bool { return r.is(http.MethodPost, "/standinmachines") },
			after: func(r request) bool { return r.method == http.MethodDelete && strings.HasSuffix(r.path, "/secrets") },
		}
	},
}

// A request that is on its way when a run is interrupted is waited for: given up, it would be done all the same, when nobody looks any
// more.
func TestRunsKnowWhatBecameOfTheirLastRequest(t *testing.T) {
	for name, moment := range moments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cutShort(t, moment())
		})
	}
}

// Where the answer is lost nobody can wait for it, and the object is protected from what comes late: its machine would stay.
func TestRunsWithdrawTheRequestsOfAMove(t *testing.T) {
	for name, moment := range moments {
		l := moment()
		l.lost = true
		if name == "the object is made, at all" {
			continue // Nothing is there yet that could be protected.
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cutShort(t, l)
		})
	}
}

// cutShort interrupts a move, and looks that nothing of it is left.
func cutShort(t *testing.T, l *late) {
	t.Helper()
	k := kinds[0]
	p := provide(t, k, version.V1Beta2, standin.Switches{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.interrupt = cancel
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		l.next = next
		return l
	})
	options := options(k, p)
	options.Timeouts = []byte(longTimeouts)
	options.Selection.Cases = regexp.MustCompile("^Move$")
	if _, err := k.suite(ctx, config, options); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
	if !l.done {
		t.Error("the request did not come")
	}
	l.apply() // At the latest now.
	if names := left(t, p.Namespace); len(names) > 0 {
		t.Errorf("left are %v", names)
	}
	if machines, _ := p.Cloud.Machines(t.Context()); len(machines) > 0 {
		t.Errorf("machines are left: %v", machines)
	}
}

// A provider that is being restarted when the run is interrupted runs again before the run removes its objects: only it can end their
// machines.
func TestAnInterruptedRestartIsFinished(t *testing.T) {
	t.Parallel()
	k := kinds[0]
	p := provide(t, k, version.V1Beta2, standin.Switches{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	options := options(k, p)
	options.Timeouts = []byte(strings.ReplaceAll(longTimeouts, "delete: 180s", "delete: 60s"))
	options.Selection.Cases = regexp.MustCompile("^Restart$")
	restarts := 0
	options.Restart = func(ctx context.Context) error {
		if restarts++; restarts == 1 {
			return p.Restart(ctx) // The second finds a machine.
		}
		if err := p.Stop(); testenv.Ended(err) != nil {
			return err
		}
		cancel()
		if err := ctx.Err(); err != nil {
			return err // As a command that is killed.
		}
		return p.Start()
	}
	if _, err := k.suite(ctx, env.Config, options); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
	if names := left(t, p.Namespace); len(names) > 0 {
		t.Errorf("left are %v", names)
	}
	if machines, _ := p.Cloud.Machines(t.Context()); len(machines) > 0 {
		t.Errorf("machines are left: %v", machines)
	}
}
