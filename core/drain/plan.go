package drain

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// retrySlack lets retries that are due within a second of each other go out together, so that one
	// wake-up serves all blocked pods of a Node.
	retrySlack = time.Second
	// grantedTimeout is how long a granted eviction may take to show on the pod before it is sent again.
	grantedTimeout = 30 * time.Second
)

// plan is what follows from the pods, the evictions so far and the circumstances.
type plan struct {
	// due are the pods to evict now; some for the first time, some once more.
	due []*Pod
	// evicting are pods with their first eviction on its way, or one granted.
	evicting    []*Pod
	terminating []*Pod
	// blocked are pods whose eviction was refused, and that wait for the next attempt or its answer.
	blocked    []*Pod
	completing []*Pod
	// queued are pods with volumes that wait until those before them have handed over theirs.
	queued []*Pod
	later  []*Pod
	// held are pods that have returned to the Node and are left alone for a while.
	held []*Pod
	// staying are the pods that are not waited for, because they remain on the Node until its end.
	staying []*Pod
	// completed counts the pods whose completion was awaited.
	completed int
	// abandoned are pods that a forced drain could not delete, released those that it has.
	abandoned, released []*Pod
	// detach are the VolumeAttachments that a forced drain has to delete now; detaching means that it waits
	// for the answer to some.
	detach    []attachment
	detaching bool
	// reading means that something must be read before pods are decided about.
	reading bool
	// over means that a forced drain has run out of time.
	over bool
	// next is when something becomes due by time alone, zero for never.
	next time.Time
}

// done reports whether nothing is left to wait for.
func (p *plan) done() bool {
	return p.over || len(p.due)+len(p.evicting)+len(p.terminating)+len(p.blocked)+len(p.completing)+
		len(p.queued)+len(p.later)+len(p.held)+len(p.detach) == 0 && !p.detaching && !p.reading
}

// at moves next forward to t, if t is earlier.
func (p *plan) at(t time.Time) {
	if p.next.IsZero() || t.Before(p.next) {
		p.next = t
	}
}

// decided is a pod with what is to be done about it.
type decided struct {
	pod      *Pod
	decision Decision
}

// makePlan sorts the pods into what is to be done about them. It reads, and changes nothing.
func makePlan(pods map[types.UID]*Pod, attempts map[types.UID]*attempt, c circumstances) *plan {
	result := &plan{}
	remaining, first := result.split(pods, attempts, c)
	var own map[types.UID][]string
	if c.volumes != nil {
		own = c.volumes.own(pods)
	}
	var withVolumes []*Pod
	for _, d := range remaining {
		until := d.pod.FirstSeen.Add(c.returnInterval)
		switch {
		case d.pod.DeletionTimestamp != nil:
			result.terminating = append(result.terminating, d.pod)
			if c.unreachable {
				result.at(lostAt(d.pod))
			}
		case d.decision.Order > first:
			result.later = append(result.later, d.pod)
		case d.decision.Action == WaitCompleted:
			result.completing = append(result.completing, d.pod)
		case d.pod.Returned && attempts[d.pod.UID] == nil && c.now.Before(until):
			result.held = append(result.held, d.pod)
			result.at(until)
		case c.volumes != nil && !c.volumes.known && len(d.pod.Claims) > 0 && !d.pod.Finished:
			result.queued = append(result.queued, d.pod)
		case len(own[d.pod.UID]) > 0:
			withVolumes = append(withVolumes, d.pod)
		default:
			result.place(d.pod, attempts[d.pod.UID], c.now)
		}
	}
	result.placeInTurn(withVolumes, attempts, own, c)
	result.sort()
	return result
}

// split decides about each pod, puts aside those that need not go, and returns the others with their lowest order. A
// pod that the API server reports as not found is gone, though the watch may not have reported it yet, or never will; one
// with volumes is waited for, since its volumes outlive it.
func (p *plan) split(pods map[types.UID]*Pod, attempts map[types.UID]*attempt, c circumstances) (remaining []decided, first int32) {
	first = math.MaxInt32
	for _, pod := range pods {
		decision := decide(pod, c)
		a := attempts[pod.UID]
		switch {
		case a != nil && a.gone && len(pod.Claims) == 0:
		case decision.Action == Skip:
			p.staying = append(p.staying, pod)
		case decision.Action == WaitCompleted && pod.Finished:
			p.completed++
		default:
			remaining = append(remaining, decided{pod, decision})
			first = min(first, decision.Order)
		}
	}
	return remaining, first
}

// place puts a pod that is to be evicted where its eviction has got to.
func (p *plan) place(pod *Pod, a *attempt, now time.Time) {
	switch {
	case a == nil:
		p.due = append(p.due, pod)
	case a.due(now):
		p.due = append(p.due, pod)
	case a.failures > 0:
		p.blocked = append(p.blocked, pod)
	default:
		p.evicting = append(p.evicting, pod)
	}
	if a != nil && !a.inFlight && !a.due(now) {
		p.at(a.retryAt)
	}
}

// placeInTurn places pods that have attached volumes of their own: one is evicted after the other, the one with the
// highest priority first, and each only when the volumes of the one before are attached elsewhere. A pod that may
// not be evicted yet does not hold up those behind it.
func (p *plan) placeInTurn(pods []*Pod, attempts map[types.UID]*attempt, own map[types.UID][]string, c circumstances) {
	slices.SortFunc(pods, func(a, b *Pod) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), comparePods(a, b)) })
	busy := slices.ContainsFunc(p.terminating, func(pod *Pod) bool { return len(own[pod.UID]) > 0 })
	for _, pod := range pods {
		a := attempts[pod.UID]
		busy = busy || a != nil && (a.inFlight || a.ok)
	}
	for _, h := range c.handovers {
		if h.pending() {
			busy = true
			p.at(h.deadline)
		}
	}
	for _, pod := range pods {
		a := attempts[pod.UID]
		fresh := a == nil || !a.inFlight && !a.ok
		switch {
		case fresh && busy && (a == nil || a.failures == 0):
			p.queued = append(p.queued, pod)
		case fresh && busy:
			// It is tried again in its turn, and not by the time.
			p.blocked = append(p.blocked, pod)
		default:
			busy = busy || a == nil || a.due(c.now)
			p.place(pod, a, c.now)
		}
	}
}

func (p *plan) sort() {
	for _, pods := range [][]*Pod{
		p.due, p.evicting, p.terminating, p.blocked, p.completing, p.queued, p.later, p.held, p.staying,
		p.abandoned, p.released,
	} {
		slices.SortFunc(pods, comparePods)
	}
}

func comparePods(a, b *Pod) int {
	return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name),
		cmp.Compare(a.UID, b.UID))
}
