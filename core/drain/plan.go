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

// State is how far a drain is with a pod.
type State string

const (
	// due pods are evicted now; some for the first time, some once more. They are reported as Evicting or Blocked.
	due State = "Due"
	// Evicting means that the eviction is due, under way, or granted while the pod does not terminate yet.
	Evicting State = "Evicting"
	// Terminating pods have a deletionTimestamp and still exist.
	Terminating State = "Terminating"
	// Blocked means that the eviction was refused or has failed; it is retried.
	Blocked State = "Blocked"
	// Completing pods may not be evicted, and their completion is awaited.
	Completing State = "Completing"
	// Queued pods have volumes and are evicted one after the other, or their volumes are not known yet.
	Queued State = "Queued"
	// Later pods are of later groups, and left alone until the groups before them are gone.
	Later State = "Later"
	// Returning pods have come to the cordoned Node, and are evicted after Options.ReturnInterval.
	Returning State = "Returning"

	// Staying pods remain on the Node: those of DaemonSets, static ones, those that a label or a rule skips.
	Staying State = "Staying"
	// Completed pods have ended as it was awaited.
	Completed State = "Completed"
	// Abandoned means that a forced drain could not delete the pod, released that it has.
	Abandoned State = "Abandoned"
	released  State = "Released"
)

// pending reports whether the drain waits for pods in a state.
func (s State) pending() bool {
	return !slices.Contains([]State{Staying, Completed, Abandoned, released}, s)
}

// plan is what follows from the pods, the evictions so far and the circumstances.
type plan struct {
	pods map[State][]*Pod
	// detach are the VolumeAttachments that a forced drain has to delete now; detaching means that it waits
	// for the answer to some.
	detach    []attachment
	detaching bool
	// reading means that something must be read first.
	reading bool
	// over means that a forced drain has run out of time.
	over bool
	// next is when something becomes due by time alone, zero for never.
	next time.Time
}

// done reports whether nothing is left to wait for.
func (p *plan) done() bool {
	pods := 0
	for state, of := range p.pods {
		if state.pending() {
			pods += len(of)
		}
	}
	return p.over || pods+len(p.detach) == 0 && !p.detaching && !p.reading
}

// at moves next forward to t, if t is earlier.
func (p *plan) at(t time.Time) {
	if p.next.IsZero() || t.Before(p.next) {
		p.next = t
	}
}

func (p *plan) add(state State, pod *Pod) { p.pods[state] = append(p.pods[state], pod) }

// makePlan sorts the pods into what is to be done about them. It reads, and changes nothing.
func makePlan(pods map[types.UID]*Pod, attempts map[types.UID]*attempt, c circumstances) *plan {
	p := &plan{pods: map[State][]*Pod{}}
	remaining, first := p.split(pods, attempts, c)
	var own map[types.UID][]string
	if c.volumes != nil {
		own = c.volumes.own(pods)
	}
	var withVolumes []*Pod
	for pod, decision := range remaining {
		until := pod.FirstSeen.Add(c.returnInterval)
		switch {
		case pod.DeletionTimestamp != nil:
			p.add(Terminating, pod)
			if c.unreachable {
				p.at(lostAt(pod))
			}
		case decision.Order > first:
			p.add(Later, pod)
		case decision.Action == WaitCompleted:
			p.add(Completing, pod)
		case pod.Returned && attempts[pod.UID] == nil && c.now.Before(until):
			p.add(Returning, pod)
			p.at(until)
		case c.volumes != nil && !c.volumes.known && len(pod.Claims) > 0 && !pod.Finished:
			p.add(Queued, pod)
		case len(own[pod.UID]) > 0:
			withVolumes = append(withVolumes, pod)
		default:
			p.place(pod, attempts[pod.UID], c.now)
		}
	}
	p.placeInTurn(withVolumes, attempts, own, c)
	p.sort()
	return p
}

// split decides about each pod, puts aside those that need not go, and returns the others with their lowest order. A
// pod that the API server reports as not found is gone, though the watch may not have reported it yet, or never will, as with
// the in-memory provider of Cluster API; one with volumes is waited for, since its volumes outlive it.
func (p *plan) split(pods map[types.UID]*Pod, attempts map[types.UID]*attempt, c circumstances) (remaining map[*Pod]Decision, first int32) {
	remaining, first = map[*Pod]Decision{}, math.MaxInt32
	for _, pod := range pods {
		decision := decide(pod, c)
		a := attempts[pod.UID]
		switch {
		case a != nil && a.gone && len(pod.Claims) == 0:
		case decision.Action == Skip:
			p.add(Staying, pod)
		case decision.Action == WaitCompleted && pod.Finished:
			p.add(Completed, pod)
		default:
			remaining[pod] = decision
			first = min(first, decision.Order)
		}
	}
	return remaining, first
}

// place puts a pod that is to be evicted where its eviction has got to.
func (p *plan) place(pod *Pod, a *attempt, now time.Time) {
	switch {
	case a == nil || a.due(now):
		p.add(due, pod)
		return
	case a.failures > 0:
		p.add(Blocked, pod)
	default:
		p.add(Evicting, pod)
	}
	if !a.inFlight {
		p.at(a.retryAt)
	}
}

// placeInTurn places pods that have attached volumes of their own: one is evicted after the other, the one with the
// highest priority first, and each only when the volumes of the one before are attached elsewhere. A pod that may
// not be evicted yet does not hold up those behind it.
func (p *plan) placeInTurn(pods []*Pod, attempts map[types.UID]*attempt, own map[types.UID][]string, c circumstances) {
	slices.SortFunc(pods, func(a, b *Pod) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), comparePods(a, b)) })
	busy := slices.ContainsFunc(p.pods[Terminating], func(pod *Pod) bool { return len(own[pod.UID]) > 0 })
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
			p.add(Queued, pod)
		case fresh && busy:
			// It is tried again in its turn, and not by the time.
			p.add(Blocked, pod)
		default:
			busy = busy || a == nil || a.due(c.now)
			p.place(pod, a, c.now)
		}
	}
}

func (p *plan) sort() {
	for _, pods := range p.pods {
		slices.SortFunc(pods, comparePods)
	}
}

func comparePods(a, b *Pod) int {
	return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name),
		cmp.Compare(a.UID, b.UID))
}
