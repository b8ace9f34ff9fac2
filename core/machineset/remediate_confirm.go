package machineset

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/remediation"
)

// A Machine that waits for its turn was found unhealthy when it was marked for remediation. By the time that it has its turn its Node may
// be well, and the watch of Nodes may be behind. So the controller that judges Machines is asked again before one is deleted; see
// Reconciler.Confirm.

// doubt is why it is not known whether a Machine is still unhealthy, and when to ask again.
type doubt struct {
	why   string
	until time.Time
}

// unconfirmed has the Machines, by the set that they are of, that had their turn and could not be confirmed. They are asked about without
// a turn from then on, so that they do not keep others from theirs. They may be lost at any time: what is needed is asked again. The zero
// value is ready for use.
type unconfirmed struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[types.UID]doubt
}

// keep replaces what is known of the Machines of a set.
func (u *unconfirmed) keep(set types.NamespacedName, doubts map[types.UID]doubt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(doubts) == 0 {
		delete(u.of, set)
		return
	}
	if u.of == nil {
		u.of = map[types.NamespacedName]map[types.UID]doubt{}
	}
	u.of[set] = doubts
}

// known are the Machines of a set that could not be confirmed. It is not to be changed.
func (u *unconfirmed) known(set types.NamespacedName) map[types.UID]doubt {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.of[set]
}

// addDoubts marks those of the candidates that could not be confirmed at an earlier turn, and asks again where it is time. unhealthy are
// their Machines.
func (r *Reconciler) addDoubts(s *scope, candidates []remediation.Candidate, unhealthy []*clusterv1.Machine) {
	known, kept := r.unconfirmed.known(s.Key()), map[types.UID]doubt{}
	due := false
	for _, d := range known {
		due = due || !s.Now.Before(d.until)
	}
	for i, machine := range unhealthy {
		d, ok := known[machine.UID]
		if !ok {
			continue
		}
		if due {
			// All of them, so that a hundred do not take a decision each.
			found := r.Confirm(s.clusterKey(), machine.UID)
			if found.Done || found.Why == "" {
				continue
			}
			d = doubt{found.Why, s.Now.Add(found.After)}
		}
		kept[machine.UID] = d
		candidates[i].Unconfirmed, candidates[i].AskAgain = d.why, d.until
	}
	r.unconfirmed.keep(s.Key(), kept)
}

// unknown are results of which it is not known yet whether the Machine is still unhealthy, or whose Blocker says that it cannot be found
// out.
type unknown struct {
	results []remediation.Result
	// after is when to decide again.
	after time.Duration
}

// confirmGranted returns which of the Machines that may be replaced are still unhealthy, and the others. That one has a place already says
// nothing: a replacement that never came up has one while it waits for its retry, and one whose deletion is refused has it for ever.
func (r *Reconciler) confirmGranted(
	s *scope,
	granted []remediation.Result,
	byName map[string]*clusterv1.Machine,
) (confirmed []remediation.Result, others unknown) {
	doubts := map[types.UID]doubt{}
	for _, result := range granted {
		if r.Confirm == nil {
			confirmed = append(confirmed, result)
			continue
		}
		uid := byName[result.Name].UID
		found := r.Confirm(s.clusterKey(), uid)
		switch {
		case found.Done:
			confirmed = append(confirmed, result)
			continue
		case found.Why == "":
			others.wait(found.After)
		default:
			doubts[uid] = doubt{found.Why, s.Now.Add(found.After)}
			result.Blocker = remediation.NotConfirmed(found.Why, doubts[uid].until)
			// Its place is free for another.
			others.wait(time.Second)
		}
		others.results = append(others.results, result)
	}
	maps.Copy(doubts, r.unconfirmed.known(s.Key()))
	r.unconfirmed.keep(s.Key(), doubts)
	return confirmed, others
}

// blocked are those that cannot be found out.
func (u *unknown) blocked() (blocked []remediation.Result) {
	for _, result := range u.results {
		if !result.Allowed() {
			blocked = append(blocked, result)
		}
	}
	return blocked
}

func (u *unknown) wait(after time.Duration) {
	if u.after == 0 || after < u.after {
		u.after = after
	}
}

// fresh counts those that were granted a place for it.
func (u *unknown) fresh() (n int) {
	for _, result := range u.results {
		if result.Fresh {
			n++
		}
	}
	return n
}

// giveBack gives back the places that were taken for Machines that are not confirmed. Nothing was recorded of those.
func (r *Reconciler) giveBack(s *scope, others unknown, attempted func()) outcome.Outcome {
	if len(others.results) == 0 {
		return outcome.Continue()
	}
	attempted()
	for _, result := range others.results {
		if result.First {
			r.slots.Release(s.clusterKey(), remediation.GroupOf(s.Object), result.Name)
		}
	}
	return outcome.ContinueAfter(others.after)
}
