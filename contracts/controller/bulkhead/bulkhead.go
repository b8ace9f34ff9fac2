// Package bulkhead keeps one peer that hangs from taking all workers of a controller: of the work for each key, as many
// pieces are under way at once as its share allows, and what is beyond is tried again later instead of waiting in a worker.
//
// A key names a peer, for example a Cluster or the account and region of a cloud. One that accepts requests and does not answer
// them thereby delays its own objects and those of no other.
package bulkhead

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// minPause is the shortest time after which work that found its share taken is tried again.
const minPause = time.Second

// Bulkhead counts the work under way for each key. The zero value has a share of one; nil has no limit.
type Bulkhead[K comparable] struct {
	share int
	wake  func(types.NamespacedName)

	mu    sync.Mutex
	peers map[K]*peer
}

type peer struct {
	underWay int
	// waiting are the objects that were turned away, the first one first.
	waiting []types.NamespacedName
}

// ForWorkers returns a bulkhead for a controller with so many workers: a quarter of them is the share of a key, and at least one.
func ForWorkers[K comparable](workers int) *Bulkhead[K] { return &Bulkhead[K]{share: workers / 4} }

// Waking has the bulkhead wake those whom EnterFor turns away, each once there is room for it. Call it before the first use.
func (b *Bulkhead[K]) Waking(wake func(types.NamespacedName)) *Bulkhead[K] {
	b.wake = wake
	return b
}

// Enter takes a place in the share of a key, and returns how to leave it; further calls of that do nothing. When the share
// is taken it returns false at once. It never waits.
func (b *Bulkhead[K]) Enter(key K) (leave func(), entered bool) { return b.enter(key, nil) }

// EnterFor is Enter for the work on an object. One that is turned away is woken when another has left, those that have waited
// longest first. That keeps no place for it, and it may be lost, so it has to try again by itself as well, some time later.
func (b *Bulkhead[K]) EnterFor(key K, object types.NamespacedName) (leave func(), entered bool) {
	return b.enter(key, &object)
}

func (b *Bulkhead[K]) enter(key K, object *types.NamespacedName) (leave func(), entered bool) {
	if b == nil {
		return func() {}, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peers[key]
	if p == nil {
		p = &peer{}
	}
	at := -1
	if object != nil {
		at = slices.Index(p.waiting, *object)
	}
	if p.underWay >= b.shareOfEach() {
		if object != nil && at < 0 && b.wake != nil {
			p.waiting = append(p.waiting, *object)
		}
		return nil, false
	}
	if b.peers == nil {
		b.peers = map[K]*peer{}
	}
	b.peers[key] = p
	p.underWay++
	if at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
	return sync.OnceFunc(func() { b.left(key) }), true
}

// left frees a place, and wakes as many as there are places.
func (b *Bulkhead[K]) left(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peers[key]
	p.underWay--
	next := p.waiting[:min(len(p.waiting), b.shareOfEach()-p.underWay)]
	for _, object := range next {
		b.wake(object)
	}
	p.waiting = slices.Delete(p.waiting, 0, len(next))
	if p.underWay == 0 && len(p.waiting) == 0 {
		delete(b.peers, key)
	}
}

func (b *Bulkhead[K]) shareOfEach() int { return max(b.share, 1) }

// Pause is how long work that found its share taken waits: between one second and two, so that what was turned away
// together does not come again together.
func Pause() time.Duration { return minPause + rand.N(minPause) }
