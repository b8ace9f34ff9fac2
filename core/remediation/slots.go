package remediation

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
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

// UnseenTimeout is how long a decision may stay out of the cache before its place is given back.
const UnseenTimeout = 30 * time.Second

// clusterSlots holds the slots of one Cluster.
type clusterSlots struct {
	// verified means that the API server itself has been asked once what is in flight.
	verified bool
	taken    map[Slot]time.Time
}

// Slot is for a Machine whose replacement has been decided, in a MachineDeployment or a set without one.
type Slot struct {
	Group   types.UID
	Machine string
}

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
	slots.settle(view, in.Now)
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
	var expires time.Time
	for taken, since := range slots.taken {
		if !view.Flights[taken.Group].Held[taken.Machine] {
			in.InCluster++
		}
		if taken.Group == group {
			in.Held[taken.Machine] = true
		}
		if until := since.Add(UnseenTimeout); expires.IsZero() || until.Before(expires) {
			expires = until
		}
	}
	decision := Decide(in)
	waiting := false
	for _, result := range decision.Results {
		if result.Allowed() && !view.Flights[group].Recorded[result.Name] {
			// It is recorded now, for the first time or once more after an attempt whose answer was lost. That it has a place as a
			// replacement does not help: that place ends when it is written down that it was available.
			slots.taken[Slot{Group: group, Machine: result.Name}] = in.Now
		}
		waiting = waiting || !result.Allowed()
	}
	if waiting && !expires.IsZero() && (decision.Next.IsZero() || expires.Before(decision.Next)) {
		// A slot that nothing confirms must not hold up the others for ever.
		decision.Next = expires
	}
	return decision
}

// settle drops the slots that the cache confirms or that are of no use any more.
func (c *clusterSlots) settle(view View, now time.Time) {
	for taken, since := range c.taken {
		flight := view.Flights[taken.Group]
		if flight.Recorded[taken.Machine] || flight.Replaced[taken.Machine] || now.Sub(since) >= UnseenTimeout {
			delete(c.taken, taken)
		}
	}
}

// Release returns the Slot of a Machine of which nothing was recorded. It must be a fresh one: an earlier try whose answer
// was lost may have taken effect.
func (s *Slots) Release(cluster client.ObjectKey, group types.UID, machine string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.slotsOf(cluster).taken, Slot{Group: group, Machine: machine})
}

// Verified reports whether what is in flight in a Cluster is known from the API server itself since the start.
func (s *Slots) Verified(cluster client.ObjectKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slotsOf(cluster).verified
}

// Verify takes in what is in flight by the API server. What the cache does not show holds a Slot until it does.
func (s *Slots) Verify(cluster client.ObjectKey, live []Slot, view View, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := s.slotsOf(cluster)
	slots.verified = true
	for _, found := range live {
		slots.taken[found] = now
	}
	slots.settle(view, now)
}

// slotsOf returns the slots of a Cluster. It is called under mu.
func (s *Slots) slotsOf(cluster client.ObjectKey) *clusterSlots {
	if s.of == nil {
		s.of = map[client.ObjectKey]*clusterSlots{}
	}
	slots, ok := s.of[cluster]
	if !ok {
		slots = &clusterSlots{taken: map[Slot]time.Time{}}
		s.of[cluster] = slots
	}
	return slots
}

// Forget drops the slots of a Cluster that is gone.
func (s *Slots) Forget(cluster client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, cluster)
}
