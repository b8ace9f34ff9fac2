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

// ledger remembers what this process has written and the cache may not show yet. Without it, a MachineSet that
// is looked at twice before its own writes come back would create or delete one Machine too many. It is in
// memory alone: after a restart the API server is asked once, see verified. The zero value is ready for use.
type ledger struct {
	mu   sync.Mutex
	sets map[types.UID]*account
}

// account is the ledger's page of one MachineSet.
type account struct {
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

// page returns the account of a MachineSet. It is called under mu.
func (l *ledger) page(set types.UID) *account {
	if l.sets == nil {
		l.sets = map[types.UID]*account{}
	}
	page, ok := l.sets[set]
	if !ok {
		page = &account{
			created:  map[types.UID]unseen{},
			deleted:  map[types.UID]bool{},
			complete: map[types.UID]bool{},
			seeds:    map[string]bool{},
		}
		l.sets[set] = page
	}
	return page
}

// settle brings the Machines in the cache and what is remembered together: it returns all Machines of the
// set as far as known, those whose deletion was asked for with a deletion timestamp, and forgets what the
// cache shows by now. The Machines given are not modified.
func (l *ledger) settle(set types.UID, cached []*clusterv1.Machine, now time.Time) []*clusterv1.Machine {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := l.page(set)
	present := make(map[types.UID]bool, len(cached))
	known := make([]*clusterv1.Machine, 0, len(cached)+len(page.created))
	for _, machine := range cached {
		present[machine.UID] = true
		delete(page.created, machine.UID)
		known = append(known, page.marked(machine, now))
	}
	for uid, entry := range page.created {
		present[uid] = true
		known = append(known, page.marked(entry.machine, now))
		if now.Sub(entry.since) >= unseenTimeout {
			page.verified = false
		}
	}
	page.trust(known)
	for uid := range page.deleted {
		if !present[uid] {
			delete(page.deleted, uid)
		}
	}
	for uid := range page.complete {
		if !present[uid] {
			delete(page.complete, uid)
		}
	}
	return known
}

// marked returns the Machine as deleting, if its deletion was asked for.
func (a *account) marked(machine *clusterv1.Machine, now time.Time) *clusterv1.Machine {
	if !a.deleted[machine.UID] || !machine.DeletionTimestamp.IsZero() {
		return machine
	}
	marked := *machine
	marked.DeletionTimestamp = &metav1.Time{Time: now}
	return &marked
}

// mark returns the Machines, those whose deletion was asked for as deleting.
func (l *ledger) mark(set types.UID, machines []*clusterv1.Machine, now time.Time) []*clusterv1.Machine {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := l.page(set)
	marked := make([]*clusterv1.Machine, len(machines))
	for i, machine := range machines {
		marked[i] = page.marked(machine, now)
	}
	return marked
}

// unseenUntil returns when the oldest Machine that the cache does not show must be asked about; zero for none.
func (l *ledger) unseenUntil(set types.UID) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest time.Time
	for _, entry := range l.page(set).created {
		if oldest.IsZero() || entry.since.Before(oldest) {
			oldest = entry.since
		}
	}
	if oldest.IsZero() {
		return oldest
	}
	return oldest.Add(unseenTimeout)
}

// verified says whether the ledger can be relied on.
func (l *ledger) verified(set types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.page(set).verified
}

// verify takes in the Machines that the API server has, by their metadata, and those of the cache that were
// among what was asked for: Machines that the cache lacks count as created, those that it has too many or shows
// as alive wrongly count as deleted.
func (l *ledger) verify(set types.UID, live []*clusterv1.Machine, cached []*clusterv1.Machine, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := l.page(set)
	page.verified = true
	for uid, entry := range page.created {
		if now.Sub(entry.since) >= unseenTimeout {
			delete(page.created, uid)
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
			page.deleted[machine.UID] = true
		}
		if !shown[machine.UID] {
			page.created[machine.UID] = unseen{machine: machine, since: now}
		}
	}
	page.trust(live)
	for _, machine := range cached {
		if !exists[machine.UID] {
			page.deleted[machine.UID] = true
		}
	}
}

// doubt makes the API server be asked again before the next Machine is created or deleted.
func (l *ledger) doubt(set types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.page(set).verified = false
}

// bare says whether only the metadata of a Machine is known, from verify; the cache brings the rest.
func bare(machine *clusterv1.Machine) bool { return machine.Spec.ClusterName == "" }

func (l *ledger) created(set types.UID, machine *clusterv1.Machine, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := l.page(set)
	page.created[machine.UID] = unseen{machine: machine, since: now}
	page.use(machine.Name)
}

// gone takes in that the API server does not have a Machine. One that the cache never showed is forgotten.
func (l *ledger) gone(set, machine types.UID) {
	l.deleted(set, machine)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.page(set).created, machine)
}

func (l *ledger) deleted(set, machine types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.page(set).deleted[machine] = true
}

func (l *ledger) completed(set, machine types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.page(set).complete[machine] = true
}

func (l *ledger) isComplete(set, machine types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.page(set).complete[machine]
}

// forget drops the page of a MachineSet that is gone.
func (l *ledger) forget(set types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sets, set)
}
