package spread

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// Machine is one machine that is to be placed, or one of its set.
type Machine struct {
	Key types.NamespacedName
	UID types.UID
	// FailureDomain is where it is recorded to be; empty if nothing is recorded.
	FailureDomain string
}

// Decisions are what this process has decided and caches may not show yet. They are made one after the other, so that
// machines that are placed at the same instant are spread too.
type Decisions struct {
	mu      sync.Mutex
	decided map[types.NamespacedName]Machine
}

// NewDecisions returns none yet.
func NewDecisions() *Decisions {
	return &Decisions{decided: map[types.NamespacedName]Machine{}}
}

// Place chooses the place of m and remembers it. siblings returns the other machines of the set as the cache has them,
// without those that leave; it is called while nothing else is decided, so it must not wait for a network.
func (d *Decisions) Place(
	m Machine,
	candidates []driver.Candidate,
	turn uint32,
	siblings func() ([]Machine, error),
) (driver.Placement, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set, err := siblings()
	if err != nil {
		return driver.Placement{}, err
	}
	perDomain := map[string]int{}
	for _, sibling := range set {
		if sibling.Key == m.Key {
			continue
		}
		if later, ok := d.decided[sibling.Key]; ok && later.UID == sibling.UID {
			sibling = later
		}
		if sibling.FailureDomain != "" {
			perDomain[sibling.FailureDomain]++
		}
	}
	chosen := Choose(candidates, perDomain, turn)
	m.FailureDomain = chosen.FailureDomain
	d.decided[m.Key] = m
	return chosen, nil
}

// Withdraw notes that m is nowhere after all, whatever a cache may still show: its launch was refused.
func (d *Decisions) Withdraw(m Machine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m.FailureDomain = ""
	d.decided[m.Key] = m
}

// Forget drops what is known of a machine that no longer exists.
func (d *Decisions) Forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.decided, key)
}
