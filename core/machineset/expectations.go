package machineset

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// unseenTimeout is how long a Machine that was created may stay out of the cache before the API server is
// asked what has become of it.
const unseenTimeout = 30 * time.Second

// expectations remembers what this process has written and the cache may not show yet. Without it, a MachineSet that
// is looked at twice before its own writes come back would create or delete one Machine too many. It is in
// memory alone: after a restart the API server is asked once, see verified. The zero value is ready for use.
type expectations struct {
	mu   sync.Mutex
	sets map[types.UID]*setExpectations
}

// setExpectations are those of one MachineSet.
type setExpectations struct {
	// verified means that the Machines have been read from the API server itself since the process started,
	// or since a write whose effect is not known.
	verified bool
	// created are Machines that were created and are not in the cache yet.
	created map[types.UID]unseen
	// deleted are Machines whose deletion was asked for, and which the cache does not show as deleting yet.
	deleted map[types.UID]bool
	// open are the reserved names of which no Machine has been seen. The creation of one may have been asked for and take
	// effect after the API server was asked what there is, so these names are the next to be used: a name exists once.
	open []reservedName
	// seeds are those of the last reservation that was taken in, and of those before it that have open names.
	seeds map[string]bool
	// complete are Machines whose bootstrap config and infrastructure machine are known to have existed.
	complete map[types.UID]bool
}

type unseen struct {
	machine *clusterv1.Machine
	since   time.Time
}

// of returns the expectations of a MachineSet. It is called under mu.
func (e *expectations) of(set types.UID) *setExpectations {
	if e.sets == nil {
		e.sets = map[types.UID]*setExpectations{}
	}
	expected, ok := e.sets[set]
	if !ok {
		expected = &setExpectations{
			created:  map[types.UID]unseen{},
			deleted:  map[types.UID]bool{},
			complete: map[types.UID]bool{},
			seeds:    map[string]bool{},
		}
		e.sets[set] = expected
	}
	return expected
}

// settle brings the Machines in the cache and what is remembered together: it returns all Machines of the
// set as far as known, those whose deletion was asked for with a deletion timestamp, and forgets what the
// cache shows by now. The Machines given are not modified.
func (e *expectations) settle(set types.UID, cached []*clusterv1.Machine, now time.Time) []*clusterv1.Machine {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected := e.of(set)
	present := make(map[types.UID]bool, len(cached))
	known := make([]*clusterv1.Machine, 0, len(cached)+len(expected.created))
	for _, machine := range cached {
		present[machine.UID] = true
		delete(expected.created, machine.UID)
		known = append(known, expected.marked(machine, now))
	}
	for uid, entry := range expected.created {
		present[uid] = true
		known = append(known, expected.marked(entry.machine, now))
		if now.Sub(entry.since) >= unseenTimeout {
			expected.verified = false
		}
	}
	expected.trust(known)
	for uid := range expected.deleted {
		if !present[uid] {
			delete(expected.deleted, uid)
		}
	}
	for uid := range expected.complete {
		if !present[uid] {
			delete(expected.complete, uid)
		}
	}
	return known
}

// marked returns the Machine as deleting, if its deletion was asked for.
func (a *setExpectations) marked(machine *clusterv1.Machine, now time.Time) *clusterv1.Machine {
	if !a.deleted[machine.UID] || !machine.DeletionTimestamp.IsZero() {
		return machine
	}
	marked := *machine
	marked.DeletionTimestamp = &metav1.Time{Time: now}
	return &marked
}

// mark returns the Machines, those whose deletion was asked for as deleting.
func (e *expectations) mark(set types.UID, machines []*clusterv1.Machine, now time.Time) []*clusterv1.Machine {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected := e.of(set)
	marked := make([]*clusterv1.Machine, len(machines))
	for i, machine := range machines {
		marked[i] = expected.marked(machine, now)
	}
	return marked
}

// unseenUntil returns when the oldest Machine that the cache does not show must be asked about; zero for none.
func (e *expectations) unseenUntil(set types.UID) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	var oldest time.Time
	for _, entry := range e.of(set).created {
		if oldest.IsZero() || entry.since.Before(oldest) {
			oldest = entry.since
		}
	}
	if oldest.IsZero() {
		return oldest
	}
	return oldest.Add(unseenTimeout)
}

// verified reports whether the expectations can be relied on.
func (e *expectations) verified(set types.UID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of(set).verified
}

// verify takes in the Machines that the API server has, by their metadata, and those of the cache that were
// among what was asked for: Machines that the cache lacks count as created, those that it has too many or shows
// as alive wrongly count as deleted.
func (e *expectations) verify(set types.UID, live []*clusterv1.Machine, cached []*clusterv1.Machine, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected := e.of(set)
	expected.verified = true
	for uid, entry := range expected.created {
		if now.Sub(entry.since) >= unseenTimeout {
			delete(expected.created, uid)
		}
	}
	shown := make(map[types.UID]bool, len(cached))
	for _, machine := range cached {
		shown[machine.UID] = true
	}
	exists := make(map[types.UID]bool, len(live))
	for _, machine := range live {
		exists[machine.UID] = true
		if !machine.DeletionTimestamp.IsZero() {
			expected.deleted[machine.UID] = true
		}
		if !shown[machine.UID] {
			expected.created[machine.UID] = unseen{machine: machine, since: now}
		}
	}
	expected.trust(live)
	for _, machine := range cached {
		if !exists[machine.UID] {
			expected.deleted[machine.UID] = true
		}
	}
}

// invalidate makes the API server be asked again before the next Machine is created or deleted.
func (e *expectations) invalidate(set types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(set).verified = false
}

// metadataOnly reports whether only the metadata of a Machine is known, from verify; the cache brings the rest.
func metadataOnly(machine *clusterv1.Machine) bool { return machine.Spec.ClusterName == "" }

func (e *expectations) created(set types.UID, machine *clusterv1.Machine, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected := e.of(set)
	expected.created[machine.UID] = unseen{machine: machine, since: now}
	expected.use(machine.Name)
}

// gone records that the API server does not have a Machine. One that the cache never showed is forgotten.
func (e *expectations) gone(set, machine types.UID) {
	e.deleted(set, machine)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.of(set).created, machine)
}

func (e *expectations) deleted(set, machine types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(set).deleted[machine] = true
}

func (e *expectations) completed(set, machine types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(set).complete[machine] = true
}

func (e *expectations) isComplete(set, machine types.UID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of(set).complete[machine]
}

// forget drops the expectations of a MachineSet that no longer exists.
func (e *expectations) forget(set types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sets, set)
}
