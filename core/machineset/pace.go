package machineset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// interval is the shortest time between two reconciles of a set that its Machines ask for. A change of the set
// itself is never held up, nor is the first event after a pause.
const interval = 500 * time.Millisecond

// pace spaces the reconciles that events of Machines ask for, so that a set of a thousand Machines that come up
// together is counted, and its status written, a few times a second and not a thousand times. The zero value
// is ready for use.
type pace struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

// began notes that a set is being reconciled.
func (p *pace) began(set types.NamespacedName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[types.NamespacedName]time.Time{}
	}
	p.last[set] = now
}

// delay is how long an event has to wait; zero when it need not.
func (p *pace) delay(set types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[set]
	if !ok {
		return 0
	}
	return max(0, interval-now.Sub(last))
}

// forget drops a set that no longer exists.
func (p *pace) forget(set types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, set)
}
