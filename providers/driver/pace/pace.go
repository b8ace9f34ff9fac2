// Package pace spreads launches over time, so that a burst of Machines does not run into the
// cloud's own limit, where every refused call costs tokens as well.
package pace

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"millwright.dev/providers/driver"
)

// Pacer gives out launch slots by scope: Burst at once, then PerSecond. It never blocks: whoever
// does not get a slot gets the time of its slot, which is kept for it.
type Pacer struct {
	clock     clock.PassiveClock
	perSecond rate.Limit
	burst     int

	mu       sync.Mutex
	limiters map[driver.Scope]*rate.Limiter
	slots    map[types.NamespacedName]time.Time
}

// New returns a Pacer. A perSecond of zero or less sets no limit.
func New(clk clock.PassiveClock, perSecond float64, burst int) *Pacer {
	limit := rate.Limit(perSecond)
	if perSecond <= 0 {
		limit = rate.Inf
	}
	return &Pacer{
		clock:     clk,
		perSecond: limit,
		burst:     max(burst, 1),
		limiters:  map[driver.Scope]*rate.Limiter{},
		slots:     map[types.NamespacedName]time.Time{},
	}
}

// Admit returns zero if key may launch now, else the time until its slot. A slot is used up by the
// call that returns zero.
func (p *Pacer) Admit(scope driver.Scope, key types.NamespacedName) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	slot, reserved := p.slots[key]
	if !reserved {
		slot = now.Add(p.limiter(scope).ReserveN(now, 1).DelayFrom(now))
	}
	if wait := slot.Sub(now); wait > 0 {
		p.slots[key] = slot
		return wait
	}
	delete(p.slots, key)
	return 0
}

// Forget drops the slot that is kept for key.
func (p *Pacer) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.slots, key)
}

func (p *Pacer) limiter(scope driver.Scope) *rate.Limiter {
	l, ok := p.limiters[scope]
	if !ok {
		l = rate.NewLimiter(p.perSecond, p.burst)
		p.limiters[scope] = l
	}
	return l
}
