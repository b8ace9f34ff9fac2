package simulator

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Throttle is a token bucket of requests.
type Throttle struct {
	// Burst is the size of the bucket.
	Burst int
	// RefillPerSecond is how many requests come back each second.
	RefillPerSecond float64
}

// Buckets are token buckets by the names of what they limit.
type Buckets struct {
	limits map[string]Throttle
	clock  clock.PassiveClock

	mu     sync.Mutex
	levels map[string]*level
}

type level struct {
	tokens float64
	at     time.Time
}

// NewBuckets returns full buckets. The limit "*" is that of the bucket of each name that is not in limits.
func NewBuckets(limits map[string]Throttle, c clock.PassiveClock) *Buckets {
	return &Buckets{limits: limits, clock: c, levels: map[string]*level{}}
}

// Take is false when the bucket of the name is empty. What is not limited has no bucket.
func (b *Buckets) Take(name string) bool { return b.TakeFor(name, "") }

// TakeFor is Take from a caller's own bucket, by the limit of the name.
func (b *Buckets) TakeFor(name, holder string) bool {
	limit, ok := b.limits[name]
	if !ok {
		if limit, ok = b.limits["*"]; !ok {
			return true
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	name += " " + holder
	l := b.levels[name]
	if l == nil {
		l = &level{tokens: float64(limit.Burst), at: now}
		b.levels[name] = l
	}
	l.tokens = min(float64(limit.Burst), l.tokens+now.Sub(l.at).Seconds()*limit.RefillPerSecond)
	l.at = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}
