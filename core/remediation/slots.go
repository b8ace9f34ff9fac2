package remediation

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Slots see to it that no more Machines of a MachineDeployment, or of a Cluster, are replaced at once than the limits
// allow, however many sets there are and however many of them are reconciled at the same time. What is in flight is read from
// the Machines and MachineSets themselves; a slot stands in for a record from the decision until the cache shows it. The zero
// value is ready for use.
type Slots struct {
	mu sync.Mutex
	of map[client.ObjectKey]*clusterSlots
}

// UnseenTimeout is how long a decision may stay out of the cache before the API server is asked what has become of it.
const UnseenTimeout = 30 * time.Second

// clusterSlots holds the slots of one Cluster.
type clusterSlots struct {
	// verified means that the API server itself has been asked once what is in flight.
	verified bool
	taken    map[Slot]*state
}

// state is what is known of a slot. That the cache does not show its record proves nothing: it may lag for any time.
type state struct {
	// since is when it was decided, when the last attempt to record it ended, or when the API server has confirmed it last.
	since time.Time
	// attempts is how many requests to record it are on their way. Whatever is read meanwhile, they may take effect after it.
	attempts int
	// coming means that it is of a replacement that exists, and that the cache does not show.
	coming bool
}

// overdue reports whether the API server has to be asked what has become of a slot.
func (s *state) overdue(now time.Time) bool {
	return s.attempts == 0 && now.Sub(s.since) >= UnseenTimeout
}

// until is when to look again whether a slot still holds up others: what is being recorded is seen or given back in a moment, the latter
// without an event.
func (s *state) until(now time.Time) time.Time {
	if s.attempts > 0 {
		return now.Add(min(max(now.Sub(s.since), time.Second), UnseenTimeout))
	}
	if until := s.since.Add(UnseenTimeout); until.After(now) {
		return until
	}
	return now.Add(UnseenTimeout) // The API server was asked about it without a result.
}

// Slot is for a Machine whose replacement has been decided, in a MachineDeployment or a set without one.
type Slot struct {
	Group   types.UID
	Machine string
}

// Live is a Slot that the API server shows.
type Live struct {
	Slot
	// Coming means that the Machine is a replacement that has not been available, and not one that is to be replaced.
	Coming bool
}

// Unverified is what the API server has to be asked about a Cluster, and since when it was not known: what changes meanwhile is not
// concluded upon.
type Unverified struct {
	// Start means that it has not been asked since the process began.
	Start bool
	slots map[Slot]time.Time
}

// Any reports whether there is something to ask.
func (u Unverified) Any() bool { return u.Start || len(u.slots) > 0 }

// View is what the cache shows of a Cluster.
type View struct {
	// Flights are what is in flight by MachineDeployment, or set without one.
	Flights map[types.UID]Flight
	// Unhealthy of Machines have failed their health check; Wanted is how many there shall be.
	Unhealthy, Machines, Wanted int
}

// Decide has the candidates decided upon, and keeps the places that are granted.
func (s *Slots) Decide(cluster client.ObjectKey, group types.UID, view View, in Input) Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := s.slotsOf(cluster)
	slots.settle(view)
	in.Held = map[string]bool{}
	in.InCluster = 0
	for owner, flight := range view.Flights {
		in.InCluster += len(flight.Held)
		if owner == group {
			for name := range flight.Held {
				in.Held[name] = true
			}
		}
	}
	var next time.Time
	for taken, state := range slots.taken {
		if !view.Flights[taken.Group].Held[taken.Machine] {
			in.InCluster++
		}
		if taken.Group == group {
			in.Held[taken.Machine] = true
		}
		if state.overdue(in.Now) {
			in.Overdue++
		}
		if until := state.until(in.Now); next.IsZero() || until.Before(next) {
			next = until
		}
	}
	decision := Decide(in)
	waiting := false
	for i, result := range decision.Results {
		if result.Allowed() && !view.Flights[group].Recorded[result.Name] {
			// It is recorded now, for the first time or once more after an attempt whose answer was lost. That it has a place as a
			// replacement does not help: that place ends when it is written down that it was available.
			slot := Slot{Group: group, Machine: result.Name}
			decision.Results[i].First = slots.taken[slot] == nil
			slots.take(slot, in.Now).attempts++
		}
		waiting = waiting || !result.Allowed()
	}
	if waiting && !next.IsZero() && (decision.Next.IsZero() || next.Before(decision.Next)) {
		// A slot that the cache never confirms must not hold up the others for ever: the API server is asked then.
		decision.Next = next
	}
	return decision
}

// take takes a slot, or renews it as one that is to be recorded.
func (c *clusterSlots) take(slot Slot, now time.Time) *state {
	if c.taken[slot] == nil {
		c.taken[slot] = &state{}
	}
	c.taken[slot].since, c.taken[slot].coming = now, false
	return c.taken[slot]
}

// settle drops the slots that the cache confirms.
func (c *clusterSlots) settle(view View) {
	for taken, state := range c.taken {
		flight := view.Flights[taken.Group]
		if state.coming && flight.Existing[taken.Machine] ||
			!state.coming && (flight.Recorded[taken.Machine] || flight.Replaced[taken.Machine]) {
			delete(c.taken, taken)
		}
	}
}

// Attempt returns what ends the attempt to record what a Decide has granted; only the first call does. The caller of Decide has it
// deferred at once, so that no place outlives an attempt that ends before it has begun.
func (s *Slots) Attempt(cluster client.ObjectKey, group types.UID, decision Decision, clk clock.PassiveClock) (over func()) {
	var granted []Result
	for _, result := range decision.Results {
		if result.Allowed() {
			granted = append(granted, result)
		}
	}
	return sync.OnceFunc(func() { s.Attempted(cluster, group, granted, clk.Now()) })
}

// Attempted reports that the attempt to record what was granted is over, whatever has come of it. It follows each Decide that grants.
func (s *Slots) Attempted(cluster client.ObjectKey, group types.UID, granted []Result, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := s.slotsOf(cluster)
	for _, result := range granted {
		if state := slots.taken[Slot{Group: group, Machine: result.Name}]; state != nil && state.attempts > 0 {
			state.attempts--
			state.since = now
		}
	}
}

// Release returns the Slot of a Machine of which nothing was recorded, after Attempted. It must be the First: an earlier try whose
// answer was lost may have taken effect.
func (s *Slots) Release(cluster client.ObjectKey, group types.UID, machine string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := Slot{Group: group, Machine: machine}
	if slots := s.slotsOf(cluster); slots.taken[slot] != nil && slots.taken[slot].attempts == 0 {
		delete(slots.taken, slot)
	}
}

// Unverified returns what the API server has to be asked before a decision: what is in flight at all, or what has become of the decisions
// that the cache has not shown for UnseenTimeout.
func (s *Slots) Unverified(cluster client.ObjectKey, view View, now time.Time) Unverified {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := s.slotsOf(cluster)
	slots.settle(view)
	unverified := Unverified{Start: !slots.verified, slots: map[Slot]time.Time{}}
	for taken, state := range slots.taken {
		if state.overdue(now) {
			unverified.slots[taken] = state.since
		}
	}
	return unverified
}

// Verify takes in what is in flight by the API server, which was asked after Unverified. What the cache does not show of it holds
// a Slot until it does; what was unverified and the API server does not show has ended.
func (s *Slots) Verify(cluster client.ObjectKey, unverified Unverified, live []Live, view View, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := s.slotsOf(cluster)
	slots.verified = true
	for slot, since := range unverified.slots {
		// One that was decided upon once more meanwhile is younger than the answer.
		if held := slots.taken[slot]; held != nil && held.attempts == 0 && held.since.Equal(since) {
			delete(slots.taken, slot)
		}
	}
	for _, found := range live {
		if held := slots.taken[found.Slot]; held != nil {
			held.since = now
			continue
		}
		slots.taken[found.Slot] = &state{since: now, coming: found.Coming}
	}
	slots.settle(view)
}

// slotsOf returns the slots of a Cluster. It is called under mu.
func (s *Slots) slotsOf(cluster client.ObjectKey) *clusterSlots {
	if s.of == nil {
		s.of = map[client.ObjectKey]*clusterSlots{}
	}
	slots, ok := s.of[cluster]
	if !ok {
		slots = &clusterSlots{taken: map[Slot]*state{}}
		s.of[cluster] = slots
	}
	return slots
}

// Forget drops the slots of a Cluster that no longer exists.
func (s *Slots) Forget(cluster client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, cluster)
}
