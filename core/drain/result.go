package drain

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Result is how far a drain is. The lists are sorted by namespace and name.
type Result struct {
	// Done means that no pod remains that the drain must wait for; of a forced drain, that there is nothing
	// left to try; of one that only observes, that the pods are known.
	Done bool
	// Cordoned means that the Node is unschedulable as far as is known.
	Cordoned bool
	// Listed means that the pods are known, and what decisions about them rest on; before, all lists are empty.
	Listed bool
	// Evicting are pods whose eviction is due, under way, or granted while the pod does not terminate yet.
	Evicting []PodStatus
	// Terminating are pods with a deletionTimestamp that still exist.
	Terminating []PodStatus
	// Blocked are pods whose eviction was refused or has failed; it is tried again.
	Blocked []PodStatus
	// Completing are pods that may not be evicted and whose completion is awaited.
	Completing []PodStatus
	// Queued are pods with volumes that are evicted one after the other.
	Queued []PodStatus
	// Later are pods of later groups, which are left alone until the groups before them are gone.
	Later []PodStatus
	// Returning are pods that have returned to the cordoned Node and are evicted again after Options.ReturnInterval.
	Returning []PodStatus
	// Abandoned are pods that a forced drain could not delete.
	Abandoned []PodStatus
	// Skipped counts the pods that stay: of DaemonSets, static ones, those that are labelled so.
	Skipped int
	// Evicted counts the pods that are being, or were, removed by eviction or deletion since this Drainer has had the drain.
	Evicted int
	// Detaching and Reattaching name the PersistentVolumes that Queued pods wait for: those that are still
	// attached to the Node, and those that are not attached to another one.
	Detaching, Reattaching []string
	// VolumesKnown means that the volumes are known; before, Volumes is empty.
	VolumesKnown bool
	// Volumes are the volumes that are attached to the Node, those aside that pods use which stay.
	Volumes []Volume
	// VolumesError is why the volumes cannot be read; empty when they can.
	VolumesError string
	// Age is how long this Drainer has had the drain; after a restart it begins again at zero.
	Age time.Duration
	// ForcedNow means that this Step has turned the drain into a forced one.
	ForcedNow bool
	// Message describes for a condition what is awaited and, where someone must act, who and how.
	// It is stable while nothing changes, and empty when Done.
	Message string
	// NextDeadline is when the drain itself tries next, zero when it waits for events alone. There is no
	// need to call Step then: Notify is called when something has changed.
	NextDeadline time.Time
}

// left counts the pods that must go.
func (r *Result) left() int {
	return len(r.Evicting) + len(r.Terminating) + len(r.Blocked) + len(r.Completing) + len(r.Queued) + len(r.Later) + len(r.Returning)
}

// drained reports whether the pods are gone and the state of the volumes is known.
func (r *Result) drained() bool { return r.Done && (r.VolumesKnown || r.VolumesError != "") }

// unsatisfiable is true when a pod is blocked by a budget that cannot be satisfied.
func (r *Result) unsatisfiable() bool {
	return slices.ContainsFunc(r.Blocked, func(s PodStatus) bool { return s.Unsatisfiable })
}

// settled reports whether nothing more is to be expected.
func (r *Result) settled() bool { return r.Done && r.VolumesKnown && len(r.Volumes) == 0 }

// PodStatus names a pod of a Result.
type PodStatus struct {
	// Pod is the pod's namespace and name.
	Pod types.NamespacedName
	// PodDisruptionBudget is the name, in the pod's namespace, of the budget that forbids the eviction.
	// Empty when it is something else that does, or when the API server did not name it.
	PodDisruptionBudget string
	// Unsatisfiable means that this budget cannot allow any eviction as it is.
	Unsatisfiable bool
	// Reason describes why the pod is blocked.
	Reason string
}
