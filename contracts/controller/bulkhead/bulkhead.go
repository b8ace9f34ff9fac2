// Package bulkhead keeps one peer that hangs from taking all workers of a controller: of the work for each key, as many
// pieces are under way at once as its share allows, and what is beyond comes again instead of waiting in a worker.
//
// The keys of this provider are Clusters. A target cluster that accepts requests and does not answer them, which whoever
// writes its kubeconfig Secret can bring about, thereby delays its own machines and none of other Clusters.
package bulkhead

import (
	"math/rand/v2"
	"sync"
	"time"
)

// minPause is the shortest time after which work that found its share taken comes again.
const minPause = time.Second

// Bulkhead counts the work under way for each key. The zero value has a share of one; nil has no limit.
type Bulkhead[K comparable] struct {
	share int

	mu       sync.Mutex
	underWay map[K]int
}

// ForWorkers returns a bulkhead for a controller with so many workers: a quarter of them is the share of a key, and at least one.
func ForWorkers[K comparable](workers int) *Bulkhead[K] { return &Bulkhead[K]{share: workers / 4} }

// Enter takes a place in the share of a key, and returns how to leave it; further calls of that do nothing. When the share
// is taken it returns false at once. It never waits.
func (b *Bulkhead[K]) Enter(key K) (leave func(), entered bool) {
	if b == nil {
		return func() {}, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.underWay[key] >= max(b.share, 1) {
		return nil, false
	}
	if b.underWay == nil {
		b.underWay = map[K]int{}
	}
	b.underWay[key]++
	return sync.OnceFunc(func() { b.left(key) }), true
}

func (b *Bulkhead[K]) left(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.underWay[key]--
	if b.underWay[key] == 0 {
		delete(b.underWay, key)
	}
}

// Pause is how long work that found its share taken stays away: between one second and two, so that what was turned away
// together does not come again together.
func Pause() time.Duration { return minPause + rand.N(minPause) }
