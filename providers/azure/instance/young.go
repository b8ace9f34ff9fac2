package instance

import (
	"sync"
	"time"
)

// youngFor is how long lists may lack a machine that was launched: longer than Azure's lists lag.
const youngFor = 2 * time.Minute

// young has the launches of this process that lists may lack.
type young struct {
	mu       sync.Mutex
	launches map[resourceKey]time.Time
}

func newYoung() *young { return &young{launches: map[resourceKey]time.Time{}} }

// note remembers a launch, and forgets those that are no longer young.
func (y *young) note(this resourceKey, now time.Time) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for key, at := range y.launches {
		if now.Sub(at) > youngFor {
			delete(y.launches, key)
		}
	}
	y.launches[this] = now
}

func (y *young) has(this resourceKey, now time.Time) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	at, known := y.launches[this]
	return known && now.Sub(at) <= youngFor
}
