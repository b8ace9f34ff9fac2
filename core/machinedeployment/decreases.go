package machinedeployment

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// decreases remembers which sets got a smaller number of replicas and have not observed it yet. Until then such a
// set may have Machines, or just be creating some, that its new number does not show, and that no other set may
// take the place of. It is in memory alone: a set looks within moments. The zero value is ready for use.
type decreases struct {
	mu      sync.Mutex
	pending map[types.UID]decrease
}

type decrease struct {
	// from is the number before.
	from int
	// generation is that of the set with the new number.
	generation int64
}

// note takes in a change of a set's number, as it was written.
func (d *decreases) note(set *clusterv1.MachineSet, from, to int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if to >= from {
		return
	}
	if d.pending == nil {
		d.pending = map[types.UID]decrease{}
	}
	if before, ok := d.pending[set.UID]; ok {
		from = max(from, before.from)
	}
	d.pending[set.UID] = decrease{from: from, generation: set.Generation}
}

// reserve is how many Machines the set may have because of a decrease that it has not looked at.
func (d *decreases) reserve(set *clusterv1.MachineSet) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	pending, ok := d.pending[set.UID]
	if !ok {
		return 0
	}
	if set.Status.ObservedGeneration >= pending.generation {
		delete(d.pending, set.UID)
		return 0
	}
	return pending.from
}

// forget drops a set that goes.
func (d *decreases) forget(set types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pending, set)
}
