package freeze

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// State reports whether nothing may be replaced in a Cluster. The zero value means that replacements continue.
type State struct {
	// Reason is one of those in conditions.go; "" when nothing is frozen.
	Reason string
	// Message reports the cause.
	Message string
	// Since is when it began.
	Since time.Time
	// Until is when it ends by itself, or changes; zero while that depends on the API server. Not every end has an event: a caller that
	// waits asks again then.
	Until time.Time
	// Starting means that the API server has not answered this core yet, and the timeout is not over. A condition keeps its value: each
	// restart would change it otherwise.
	Starting bool
	// Next is, while nothing is frozen, when that changes unless the API server answers before; zero if it answers.
	Next time.Time
}

// Active reports whether nothing may be replaced.
func (s State) Active() bool { return s.Reason != "" }

// Source is what controllers ask before they conclude something from the state of a Machine or a Node, and before they replace one.
type Source interface {
	// Frozen returns the state of a Cluster now. It never blocks.
	Frozen(cluster client.ObjectKey) State
	// NotBefore returns the moment before which nothing is judged by what a Node reports, or fails to report: the end of the latest
	// grace. It may be past, and is zero if there was none; while the API server does not answer it is far in the future.
	NotBefore(cluster client.ObjectKey) time.Time
	// OnChange has f called when the state of a Cluster begins or ends other than by the time that State announced. f must not block.
	OnChange(f func(cluster client.ObjectKey))
}

// Never is the Source of tests, and of those who freeze nothing.
type Never struct{}

// Frozen returns that nothing is frozen.
func (Never) Frozen(client.ObjectKey) State { return State{} }

// NotBefore returns the zero time.
func (Never) NotBefore(client.ObjectKey) time.Time { return time.Time{} }

// OnChange does nothing.
func (Never) OnChange(func(client.ObjectKey)) {}
