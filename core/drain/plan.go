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
	later      []*Pod
	undecided  []*Pod
	skipped    int
	// next is when something becomes due by time alone, zero for never.
	next time.Time
}

// done says whether nothing is left to wait for.
func (p *plan) done() bool {
	return len(p.due)+len(p.evicting)+len(p.terminating)+len(p.blocked)+
		len(p.completing)+len(p.later)+len(p.undecided) == 0
}

// at moves next forward to t, if t is earlier.
func (p *plan) at(t time.Time) {
	if p.next.IsZero() || t.Before(p.next) {
		p.next = t
	}
}

// makePlan sorts the pods into what is to be done about them. It reads, and changes nothing.
func makePlan(pods map[types.UID]*Pod, attempts map[types.UID]*attempt, c circumstances) *plan {
	result := &plan{}
	type grouped struct {
		pod      *Pod
		decision Decision
	}
	var left []grouped
	first := int32(math.MaxInt32)
	for _, pod := range pods {
		decision := decide(pod, c)
		switch {
		case decision.Action == Skip, decision.Action == WaitCompleted && pod.Finished:
			result.skipped++
			continue
		case decision.Action == undecided:
			result.undecided = append(result.undecided, pod)
			continue
		}
		left = append(left, grouped{pod, decision})
		first = min(first, decision.Order)
	}
	for _, g := range left {
		switch {
		case g.pod.DeletionTimestamp != nil:
			result.terminating = append(result.terminating, g.pod)
			if c.unreachable {
				result.at(lostAt(g.pod))
			}
		case g.decision.Order > first:
			result.later = append(result.later, g.pod)
		case g.decision.Action == WaitCompleted:
			result.completing = append(result.completing, g.pod)
		default:
			result.place(g.pod, attempts[g.pod.UID], c.now)
		}
	}
	result.sort()
	return result
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

func (p *plan) sort() {
	for _, pods := range [][]*Pod{p.due, p.evicting, p.terminating, p.blocked, p.completing, p.later, p.undecided} {
		slices.SortFunc(pods, comparePods)
	}
}

func comparePods(a, b *Pod) int {
	return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name),
		cmp.Compare(a.UID, b.UID))
}
