package drain

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// arrival is when and how a pod has come to the Node, as seen by this drain. No times of different clocks are compared:
// what counts is what this process has seen happen after what.
type arrival struct {
	at time.Time
	// returned means that the pod came to the cordoned Node after its pods had been read. It tolerates the cordon, or has been
	// bound to the Node by other means, and the next one would come as well, whatever is named as its owner.
	returned bool
	// forced means that it returned after the drain had become a forced one.
	forced bool
	// found means that it was there already when the drain found the Node cordoned, as after a restart, and tolerates the
	// cordon: it may have been evicted by the process before, a moment ago.
	found bool
	// granted means that its eviction was granted.
	granted bool
}

// returning is what a drain knows of pods that return to the Node although it is cordoned. They are evicted, each an
// interval after it came, so that a replica is evicted once in each interval at most. After the grace the drain continues
// without them, as it does without pods of DaemonSets.
type returning struct {
	interval, grace time.Duration
	arrivals        map[types.UID]arrival
	// granted is, by the owners of pods, how many evictions the target cluster has granted, present how many of their pods
	// have returned and are there.
	granted map[owner]grants
	present map[owner]int
	// since is when the pods began to return, zero while none does; last is when one was there last.
	since, last time.Time
	// over means that they have returned for as long as the grace. It stays, so that the drain does not begin again for
	// another one that comes.
	over bool
}

// grants are the evictions of an owner's pods that were granted.
type grants struct {
	count int
	last  time.Time
}

func newReturning(options *Options) *returning {
	return &returning{
		interval: options.ReturnInterval, grace: options.ReturnGrace,
		arrivals: map[types.UID]arrival{}, granted: map[owner]grants{},
	}
}

// returnState is what a pod's return means for it.
type returnState int

const (
	// ordinary pods are treated as if they had not returned.
	ordinary returnState = iota
	// held pods are left alone until their interval is over.
	held
	// left pods stay on the Node, and the drain continues without them.
	left
)

// grantedOne remembers that the target cluster has granted the eviction of a pod. It counts once, however often it is sent.
func (r *returning) grantedOne(pod *Pod, now time.Time) {
	if came, known := r.arrivals[pod.UID]; known {
		if came.granted {
			return
		}
		came.granted = true
		r.arrivals[pod.UID] = came
	}
	r.granted[pod.Owner.key()] = grants{count: r.granted[pod.Owner.key()].count + 1, last: now}
}

// grantedEach reports whether as many evictions of the owner's pods have been granted as pods of it have returned: each of those
// that are there came in the place of one that its PodDisruptionBudget has let go.
func (r *returning) grantedEach(pod *Pod) bool {
	granted := r.granted[pod.Owner.key()].count
	return granted > 0 && granted >= r.present[pod.Owner.key()]
}

// observe updates since, last and over, and returns when it has to be called again; zero for no time. It forgets
// the owners that have not been heard of for the time of the grace.
func (r *returning) observe(pods map[types.UID]*Pod, now time.Time) (next time.Time) {
	r.present = map[owner]int{}
	for uid, pod := range pods {
		if a := r.arrivals[uid]; a.returned {
			r.present[pod.Owner.key()]++
			if r.since.IsZero() || a.at.Before(r.since) {
				r.since = a.at
			}
		}
	}
	switch {
	case len(r.present) > 0:
		r.last = now
	case now.Sub(r.last) >= r.interval:
		r.since = time.Time{}
	}
	r.forget(pods, now)
	if r.since.IsZero() || r.over {
		return time.Time{}
	}
	r.over = !now.Before(r.since.Add(r.grace))
	return r.since.Add(r.grace)
}

// forget drops owners when there are many more than pods, so that many short-lived owners do not pile up.
func (r *returning) forget(pods map[types.UID]*Pod, now time.Time) {
	if len(r.granted) <= 2*len(pods)+16 {
		return
	}
	for key, granted := range r.granted {
		if now.Sub(granted.last) > r.grace {
			delete(r.granted, key)
		}
	}
}

// stateOf derives what a pod's return means for it, given what was tried of its eviction. The time is when a held one is to
// be checked again.
func (r *returning) stateOf(pod *Pod, a *attempt, c circumstances) (returnState, time.Time) {
	if r == nil {
		return ordinary, time.Time{}
	}
	came := r.arrivals[pod.UID]
	tried := a != nil && (a.inFlight || a.ok || a.failures > 0)
	until := came.at.Add(r.interval)
	switch {
	case !came.returned && !came.found, tried:
		return ordinary, time.Time{}
	case came.returned && r.over && !r.kept(pod, c):
		return left, time.Time{}
	case pod.DeletionTimestamp == nil && c.now.Before(until):
		return held, until
	default:
		return ordinary, time.Time{}
	}
}

// leaves reports whether the drain continues without a pod.
func (r *returning) leaves(pod *Pod, a *attempt, c circumstances) bool {
	state, _ := r.stateOf(pod, a, c)
	return state == left
}

// sinceForced reports whether a pod has returned after the drain had become a forced one, which deletes each pod once.
func (r *returning) sinceForced(pod *Pod) bool { return r != nil && r.arrivals[pod.UID].forced }

// forcedAgain lets a forced drain that begins delete what has returned before.
func (r *returning) forcedAgain() {
	for uid, came := range r.arrivals {
		came.forced = false
		r.arrivals[uid] = came
	}
}

// kept reports whether the drain must not continue without a pod: one with claims, whose volumes would be torn from it; and one
// with a PodDisruptionBudget, which an eviction honours and the end of the machine does not, until that has granted the
// eviction of each replica. While the budgets have not been read, that holds for each.
func (r *returning) kept(pod *Pod, c circumstances) bool {
	if pod.DeletionTimestamp != nil || pod.Finished {
		return false
	}
	return len(pod.Claims) > 0 || !r.grantedEach(pod) && (c.budgeted == nil || c.budgeted(pod))
}

// Owner is who makes pods that return to a cordoned Node.
type Owner struct {
	// Name is its kind, namespace and name for messages.
	Name string
	// ToleratesCordon means that a pod of it tolerates the cordon; else they are bound to the Node by other means.
	ToleratesCordon bool
	// Kept means that the drain does not continue without a pod of it.
	Kept bool
}

// owners returns the owners of those pods that have returned, each once.
func (r *returning) owners(c circumstances, pods ...[]*Pod) []Owner {
	byKey := map[owner]Owner{}
	for _, pod := range slices.Concat(pods...) {
		if !r.arrivals[pod.UID].returned {
			continue
		}
		key := pod.Owner.key()
		known := byKey[key]
		byKey[key] = Owner{
			Name: pod.Owner.name, ToleratesCordon: known.ToleratesCordon || pod.ToleratesCordon,
			Kept: known.Kept || c.budgeted != nil && r.kept(pod, c),
		}
	}
	owners := slices.Collect(maps.Values(byKey))
	slices.SortFunc(owners, func(a, b Owner) int { return strings.Compare(a.Name, b.Name) })
	return owners
}
