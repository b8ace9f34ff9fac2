package instance

import (
	"sync"
	"time"

	"millwright.dev/providers/driver"
)

// listed are the instances that lists have shown lately. One that no list has shown yet may be missing since lists lag.
type listed struct {
	mu     sync.Mutex
	latest map[string]time.Time
	pruned time.Time
}

// keepListed is for how long an instance is known that lists do not show any more.
const keepListed = time.Hour

func (l *listed) add(scope driver.Scope, found []vm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.latest == nil || now.Sub(l.pruned) > keepListed {
		left := map[string]time.Time{}
		for key, at := range l.latest {
			if now.Sub(at) <= keepListed {
				left[key] = at
			}
		}
		l.latest, l.pruned = left, now
	}
	for i := range found {
		l.latest[listedKey(scope, last(found[i].Zone), found[i].Name)] = now
	}
}

func (l *listed) has(scope driver.Scope, zone, name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.latest[listedKey(scope, zone, name)]
	return ok
}

func listedKey(scope driver.Scope, zone, name string) string {
	return scope.String() + "/" + zone + "/" + name
}
