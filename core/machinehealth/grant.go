package machinehealth

import (
	"cmp"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/health"
)

const (
	// confirmedFor is how long ago a Machine may have been confirmed when it is replaced, and how long a question is remembered.
	confirmedFor = time.Minute
	// minAsk and maxAsk are how soon a question is to be repeated: an answer to a read takes milliseconds, and what has lasted for long may
	// last on.
	minAsk, maxAsk = 2 * time.Second, 30 * time.Second
	// notJudged is what keeps a Machine from being confirmed when nothing says more.
	notJudged = "it is not judged now"
)

// grants are the questions of MachineSets about Machines that have had to wait for their turn: they were handed over by what their Nodes
// said then. They may be lost at any time: what is needed is asked again. The zero value is ready for use.
type grants struct {
	mu sync.Mutex
	of map[client.ObjectKey]map[types.UID]*grant
}

// grant is one such question, and what the latest round has made of it.
type grant struct {
	// since is when it was asked first, asked when last, confirmed when a round has confirmed the Machine.
	since, asked, confirmed time.Time
	// why is what keeps a round from it.
	why string
}

// Confirm reports whether a Machine is still unhealthy, and has that found out if it is not known. It waits for nothing: whoever asks comes
// back a little later.
func (r *Reconciler) Confirm(cluster client.ObjectKey, machine types.UID) health.Confirmation {
	now := r.Clock.Now()
	known, fresh := r.grants.ask(cluster, machine, now)
	if fresh {
		return health.Confirmation{Done: true}
	}
	r.wake(cluster, 0)
	waiting := health.Confirmation{After: min(max(now.Sub(known.since), minAsk), maxAsk)}
	if now.Sub(known.since) >= unreadAfter {
		waiting.Why = cmp.Or(known.why, notJudged)
	}
	return waiting
}

// ask notes the question, and returns what is known and whether that is enough.
func (g *grants) ask(cluster client.ObjectKey, machine types.UID, now time.Time) (known grant, fresh bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.get(cluster, machine, now)
	asked.asked = now
	return *asked, !asked.confirmed.IsZero() && now.Before(asked.confirmed.Add(confirmedFor))
}

// get is called under mu.
func (g *grants) get(cluster client.ObjectKey, machine types.UID, now time.Time) *grant {
	if g.of == nil {
		g.of = map[client.ObjectKey]map[types.UID]*grant{}
	}
	if g.of[cluster] == nil {
		g.of[cluster] = map[types.UID]*grant{}
	}
	if g.of[cluster][machine] == nil {
		g.of[cluster][machine] = &grant{since: now}
	}
	return g.of[cluster][machine]
}

// forget drops the questions of a Cluster.
func (g *grants) forget(cluster client.ObjectKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.of, cluster)
}

// wanted returns the Machines of a Cluster that were asked about lately, and forgets questions that nobody repeats.
func (g *grants) wanted(cluster client.ObjectKey, now time.Time) map[types.UID]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	wanted := map[types.UID]bool{}
	for machine, asked := range g.of[cluster] {
		latest := asked.asked
		if asked.confirmed.After(latest) {
			latest = asked.confirmed
		}
		if !now.Before(latest.Add(confirmedFor)) {
			delete(g.of[cluster], machine)
			continue
		}
		// One that nobody asks about any more must not be read again each time that it was confirmed.
		wanted[machine] = now.Before(asked.asked.Add(confirmedFor))
	}
	if len(g.of[cluster]) == 0 {
		delete(g.of, cluster)
	}
	return wanted
}

// answer notes what a round has made of the questions, and that those are confirmed that it hands over.
func (r *Reconciler) answer(s *round) {
	judged := map[types.UID]*target{}
	for _, t := range s.targets {
		judged[t.UID] = t
	}
	r.grants.mu.Lock()
	defer r.grants.mu.Unlock()
	for machine, asked := range r.grants.of[s.key] {
		t := judged[machine]
		switch {
		case t != nil && t.State != health.Unhealthy:
			// Its condition changes, or it is not judged now: a freeze, or Nodes that cannot be read.
			asked.confirmed, asked.why = time.Time{}, cmp.Or(t.Message, notJudged)
		case t != nil && t.held:
			asked.why = t.unread
		case s.wanted[machine]:
			asked.confirmed, asked.since, asked.why = s.now, s.now, ""
		}
	}
	for _, t := range s.targets {
		if t.State == health.Unhealthy && !t.held && s.isNew(t) {
			r.grants.get(s.key, t.UID, s.now).confirmed = s.now
		}
	}
}
