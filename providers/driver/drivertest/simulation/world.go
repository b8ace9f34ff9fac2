package simulation

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/inframachine"
)

// Kind is the machine kind under test.
type Kind[M driver.Object] struct {
	// Name of the kind, such as AWSMachine: that of the Go type.
	Name string
	// Group of its API.
	Group string
	// New and NewList return an empty object and an empty list.
	New     func() M
	NewList func() client.ObjectList
}

// Network is how the processes of a world reach the cloud.
type Network[M driver.Object] struct {
	// Cloud makes a call in the cloud itself.
	Cloud http.RoundTripper
	// Driver returns the driver of a process, which calls by a transport.
	Driver func(http.RoundTripper) driver.Driver[M]
	// Name is what a call is named in counts, history and scripts.
	Name func(r *http.Request, body []byte) string
	// Failure is the answer of a cloud that fails, with status 500 after the effect or 503 before it. Default: an answer that is not the
	// API's.
	Failure func(r *http.Request, status int) *http.Response
	// Called is called for each call before it takes effect, Answered once it has. Both may be nil.
	Called   func(*Process[M], Call)
	Answered func(*Process[M], Call, *http.Response)
}

// World is all that takes part in the life of some machines of one kind. Everything happens in the bubble of a test, in simulated time.
type World[M driver.Object] struct {
	// Kind under test.
	Kind Kind[M]
	// Network to the cloud.
	Network Network[M]
	// Random numbers of the life.
	Random *Random
	// Chaos is what goes wrong.
	Chaos *Chaos
	// Options of the reconciler, and how many workers it has.
	Options inframachine.Options
	Workers int
	// Committed is called for each version of an object, with the world's lock; before or after is nil where there was or is none. It may be
	// nil.
	Committed func(s *Server[M], id ID, before, after client.Object)
	// CrashAt is the number of the request or call, from 0, at which the process exits; -1 for none. CrashWhen is "before" or "after" its
	// effect.
	CrashAt   int
	CrashWhen string
	// Deny, if set, returns why a policy denies a request for an object, with a verb such as "patch status"; "" if it does not.
	Deny func(verb string, obj client.Object) string
	// Draining, if set, reports whether the core drains the Node of a Machine that is being deleted. It is called with the world's lock.
	Draining func(machine string) bool

	began time.Time

	mu           sync.Mutex
	history      []string
	violation    string
	over         bool
	active       *Server[M]
	processes    []*Process[M]
	incarnations int

	countMu sync.Mutex
	counts  map[string]int
	faults  map[string]int
	points  int
}

// NewWorld prepares a world in which nothing goes wrong, with an API server.
func NewWorld[M driver.Object](seed uint64, kind Kind[M], network Network[M]) *World[M] {
	w := &World[M]{
		Kind: kind, Network: network, Random: NewRandom(seed), Chaos: NewCalm(), Workers: 1, CrashAt: -1, began: time.Now(),
		counts: map[string]int{}, faults: map[string]int{},
	}
	w.Options.Concurrency = w.Workers
	w.active = w.NewServer("A", 0)
	return w
}

// Lock and Unlock guard what the callbacks change, and the objects of servers.
func (w *World[M]) Lock() { w.mu.Lock() }

// Unlock ends Lock.
func (w *World[M]) Unlock() { w.mu.Unlock() }

// Server is the API server in use.
func (w *World[M]) Server() *Server[M] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active
}

// IsActive returns whether a server is the one in use. The lock is held.
func (w *World[M]) IsActive(s *Server[M]) bool { return w.active == s }

// Use makes another server the one in use.
func (w *World[M]) Use(s *Server[M]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active = s
}

// Began is when the world began.
func (w *World[M]) Began() time.Time { return w.began }

// Processes are all incarnations, those that have ended too.
func (w *World[M]) Processes() []*Process[M] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*Process[M](nil), w.processes...)
}

// Living is how many incarnations have not ended.
func (w *World[M]) Living() (n int) {
	for _, p := range w.Processes() {
		if !p.Dead() {
			n++
		}
	}
	return n
}

// EnsureProcess starts an incarnation on a server unless one lives.
func (w *World[M]) EnsureProcess(s *Server[M]) {
	lives := false
	for _, p := range w.Processes() {
		lives = lives || p.server == s && !p.Dead()
	}
	if !lives {
		w.Start(s)
	}
}

// After does something later, unless the life is over by then.
func (w *World[M]) After(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		w.mu.Lock()
		over := w.over
		w.mu.Unlock()
		if !over {
			do()
		}
	})
}

// Finish ends everything that is in progress.
func (w *World[M]) Finish() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	for _, p := range w.Processes() {
		p.Stop("ends")
	}
	time.Sleep(time.Minute)
}

// Log adds to the history.
func (w *World[M]) Log(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.LogLocked(format, args...)
}

// LogLocked is Log for those that hold the lock.
func (w *World[M]) LogLocked(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%10.3f  ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// History is what has happened.
func (w *World[M]) History() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history
}

// Violate notes that something is not as it must be. The first violation is that of the life.
func (w *World[M]) Violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ViolateLocked(format, args...)
}

// ViolateLocked is Violate for those that hold the lock.
func (w *World[M]) ViolateLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.LogLocked("VIOLATION: %s", text)
	if w.violation == "" {
		w.violation = text
	}
}

// Violation is the first one; empty if there is none.
func (w *World[M]) Violation() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violation
}

// mostReconciles is more than any life needs.
const mostReconciles = 20000

// count counts what happens, and returns how often it has.
func (w *World[M]) count(what string) int {
	w.countMu.Lock()
	defer w.countMu.Unlock()
	w.counts[what]++
	return w.counts[what]
}

// Counts are how often what has happened: reconciles, requests by verb and kind, and calls, with "cloud " before their names.
func (w *World[M]) Counts() map[string]int {
	w.countMu.Lock()
	defer w.countMu.Unlock()
	return maps.Clone(w.counts)
}

// Fault counts something that has gone wrong.
func (w *World[M]) Fault(kind string) {
	w.countMu.Lock()
	defer w.countMu.Unlock()
	w.faults[kind]++
}

// Faults are how often what has gone wrong.
func (w *World[M]) Faults() map[string]int {
	w.countMu.Lock()
	defer w.countMu.Unlock()
	return maps.Clone(w.faults)
}

// Points is how many requests and calls a crash could have hit so far.
func (w *World[M]) Points() int {
	w.countMu.Lock()
	defer w.countMu.Unlock()
	return w.points
}

// point counts a request or call that a crash may hit, and returns whether it is the one to hit.
func (w *World[M]) point() bool {
	w.countMu.Lock()
	defer w.countMu.Unlock()
	w.points++
	return w.points-1 == w.CrashAt
}
