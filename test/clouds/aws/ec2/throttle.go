package ec2

import (
	"time"

	"k8s.io/utils/clock"
)

// buckets are the token buckets of the actions. The server's lock guards them.
type buckets struct {
	limits map[string]Throttle
	clock  clock.PassiveClock
	levels map[string]*level
}

type level struct {
	tokens float64
	at     time.Time
}

func newBuckets(limits map[string]Throttle, c clock.PassiveClock) *buckets {
	return &buckets{limits: limits, clock: c, levels: map[string]*level{}}
}

// take is false when the action's bucket is empty.
func (b *buckets) take(action string) bool {
	limit, ok := b.limits[action]
	if !ok {
		if limit, ok = b.limits["*"]; !ok {
			return true
		}
	}
	now := b.clock.Now()
	l := b.levels[action]
	if l == nil {
		l = &level{tokens: float64(limit.Burst), at: now}
		b.levels[action] = l
	}
	l.tokens = min(float64(limit.Burst), l.tokens+now.Sub(l.at).Seconds()*limit.RefillPerSecond)
	l.at = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}
