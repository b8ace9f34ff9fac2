package freeze

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// State reports whether nothing may be replaced in a Cluster. The zero value means that replacements continue.
type State struct {
	// Reason is one of those in conditions.go; "" when nothing is frozen.
	Reason string
	// Message reports what is the matter and, where a user must act, what to do.
	Message string
	// Since is when it began.
	Since time.Time
	// Until is when it ends by itself, or becomes one that is known; zero while that depends on something else. Not every end has an
	// event: a caller that waits looks again then.
	Until time.Time
	// Routine means that each start of this core begins so, since it competes for no lease and so never knows of the time before: then it
	// is not worth a condition, which each restart would write to each Cluster.
	Routine bool
	// Unread means that it is not known yet what the previous core has reported of the Cluster, or whether the API server of the target
	// cluster had answered before this process began. A condition stays as it is until then.
	Unread bool
	// Next is, while nothing is frozen, when that changes unless an API server answers before; zero if that cannot be foreseen.
	Next time.Time
}

// Active reports whether nothing may be replaced.
func (s State) Active() bool { return s.Reason != "" }

// Source is what controllers ask before they conclude something from the state of a Machine or a Node, and before they replace one.
type Source interface {
	// Frozen returns the state of a Cluster now. It never blocks.
	Frozen(cluster client.ObjectKey) State
	// NotBefore returns the moment before which nothing is judged by what a Node reports, or fails to report: the end of the latest
	// grace. It may be past, and is zero if there was none; while something is frozen without an end it is far in the future.
	NotBefore(cluster client.ObjectKey) time.Time
	// OnChange has f called when the state of a Cluster begins or ends other than by the time that State announced; with a key without
	// a name when it concerns all Clusters. f must not block.
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
