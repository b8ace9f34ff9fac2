package drain

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Result is how far a drain is.
type Result struct {
	// Done means that no pod remains that the drain must wait for; of a forced drain, that there is nothing
	// left to try; of one that only observes, that the pods are known.
	Done bool
	// Listed means that the pods are known, and what decisions about them rest on; before, Pods is empty.
	Listed bool
	// Pods are the pods of the Node by their states, sorted by namespace and name.
	Pods map[State][]PodStatus
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

// left counts the pods that must go.
func (r *Result) left() int {
	count := 0
	for state, pods := range r.Pods {
		if state.pending() {
			count += len(pods)
		}
	}
	return count
}

// milestone is what the caller is notified of at once when it changes.
type milestone struct{ done, volumesKnown, detached, blocked, unsatisfiable bool }

func (r *Result) milestone() milestone {
	return milestone{
		done: r.Done, volumesKnown: r.Done && (r.VolumesKnown || r.VolumesError != ""),
		detached: r.Done && r.VolumesKnown && len(r.Volumes) == 0, blocked: len(r.Pods[Blocked]) > 0,
		unsatisfiable: slices.ContainsFunc(r.Pods[Blocked], func(s PodStatus) bool { return s.Unsatisfiable }),
	}
}

// sameAs reports whether a Result says nothing new.
func (r *Result) sameAs(other *Result) bool {
	return r.milestone() == other.milestone() && r.Message == other.Message && r.VolumesKnown == other.VolumesKnown &&
		r.VolumesError == other.VolumesError && slices.Equal(r.Volumes, other.Volumes)
}

// report turns a plan into a Result. It is called under mu.
func (n *nodeDrain) report(p *plan, c circumstances) Result {
	result := Result{
		Done:         n.done(p),
		Listed:       n.read(),
		Pods:         n.statuses(p),
		Evicted:      n.evictedPods(),
		Detaching:    inStage(n.handovers, detaching),
		Reattaching:  inStage(n.handovers, reattaching),
		VolumesError: strings.Join(errorsOf(n.target.attachments.readError(), n.target.volumes.readError()), "; "),
		Age:          c.now.Sub(n.began),
		NextDeadline: p.next,
	}
	switch {
	case c.volumes == nil:
		result.VolumesKnown = true
	case result.Listed && c.volumes.known:
		result.VolumesKnown, result.Volumes = true, c.volumes.without(p.pods[Staying])
	}
	result.Message = n.message(p, &result)
	return result
}

// message reports what the drain waits for, in the words of its mode.
func (n *nodeDrain) message(p *plan, result *Result) string {
	switch {
	case result.Done || n.request.Mode == Observe:
		return ""
	case n.request.Mode == Detach:
		return toDetachMessage(n.node, append(n.detachErrors(), errorsOf(n.target.attachments.readError())...))
	case n.force != nil:
		return toForcedMessage(n.node, result, len(p.detach) > 0 || p.detaching, append(n.blockers(p), n.detachErrors()...))
	default:
		return toMessage(n.node, result, n.blockers(p))
	}
}

func (n *nodeDrain) detachErrors() []string {
	return detachErrors(n.target.attachments.find(ofNode(n.node)), n.attempts)
}

// done reports whether the drain, as far as its mode goes, is over.
func (n *nodeDrain) done(p *plan) bool {
	switch {
	case n.force != nil:
		return p.done()
	case n.request.Mode == Observe:
		return !p.reading
	default:
		return n.cordon.done && p.done()
	}
}

// blockers are what the whole drain waits for.
func (n *nodeDrain) blockers(p *plan) []string {
	reasons := []string{"", n.podsError, n.target.daemonSets.readError(), n.target.namespaces.readError()}
	if !n.cordon.done {
		reasons[0] = n.cordon.reason
	}
	if len(p.pods[Queued]) > 0 || p.reading {
		reasons = append(reasons, n.target.attachments.readError(), n.target.volumes.readError())
	}
	return errorsOf(reasons...)
}

func errorsOf(reasons ...string) []string {
	return slices.DeleteFunc(reasons, func(s string) bool { return s == "" })
}

// statuses names the pods of a plan, with what is known of their evictions.
func (n *nodeDrain) statuses(p *plan) map[State][]PodStatus {
	statuses := map[State][]PodStatus{}
	for state, pods := range p.pods {
		for _, pod := range pods {
			status, reported := PodStatus{Pod: pod.Key}, state
			if known := n.attempts[pod.UID]; known != nil {
				status.PodDisruptionBudget, status.Reason = known.budget, known.reason
				n.explain(&status, pod, known)
			}
			switch {
			case state == due && status.Reason != "":
				// What is refused time and again stays blocked in the eyes of a user.
				reported = Blocked
			case state == due:
				reported = Evicting
			}
			statuses[reported] = append(statuses[reported], status)
		}
	}
	for _, of := range statuses {
		slices.SortFunc(of, func(a, b PodStatus) int { return strings.Compare(a.Pod.String(), b.Pod.String()) })
	}
	return statuses
}
