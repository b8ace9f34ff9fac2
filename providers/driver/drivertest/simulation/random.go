package simulation

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// Random gives random numbers for each purpose from a sequence of its own, such that they do not depend on the order in which goroutines
// that run at the same instant ask for them.
type Random struct {
	seed uint64

	mu    sync.Mutex
	drawn map[string]uint64
}

// NewRandom returns the numbers of a seed.
func NewRandom(seed uint64) *Random { return &Random{seed: seed, drawn: map[string]uint64{}} }

// Draw returns the next source of the purpose.
func (r *Random) Draw(purpose string) *rand.Rand {
	r.mu.Lock()
	r.drawn[purpose]++
	n := r.drawn[purpose]
	r.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(r.seed, h.Sum64()^n*0x9e3779b97f4a7c15))
}

// Between returns a time from least to most.
func (r *Random) Between(purpose string, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Draw(purpose).Int64N(int64(most-least)))
}

// latency of a request or an answer. Its nanoseconds see to it that hardly anything happens at the same instant.
func latency(d *rand.Rand) time.Duration {
	return time.Millisecond + time.Duration(d.Int64N(int64(30*time.Millisecond)))
}

// One returns one of the values.
func One[T any](d *rand.Rand, of ...T) T { return of[d.IntN(len(of))] }
