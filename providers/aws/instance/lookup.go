package instance

import (
	"context"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/utils/clock"

	"millwright.dev/providers/driver"
)

// searchTTL is how long the result of a search by filters is used again. What an ID names does not
// change in the properties that a launch needs, and is kept permanently.
const searchTTL = 5 * time.Minute

// missTTL is how long it is remembered that what is looked for is not there: less than the first wait of class Unresolved, so
// that each Machine's own repetition asks again, and the Machines that wait beside it share the answer.
const missTTL = 20 * time.Second

// lookup caches answers, so that a hundred Machines of one template ask once. Of errors only those of class Unresolved are
// cached, for a short while: the reconciler spaces its own repetitions.
type lookup[T any] struct {
	clock clock.PassiveClock
	ttl   time.Duration

	mu      sync.Mutex
	answers map[string]*answer[T]
}

type answer[T any] struct {
	// turn is taken while asking: others wait for the same answer, no longer than their own calls may take.
	turn  chan struct{}
	value T
	err   error     // of class Unresolved
	until time.Time // zero: not known
}

func newLookup[T any](clk clock.PassiveClock, ttl time.Duration) *lookup[T] {
	return &lookup[T]{clock: clk, ttl: ttl, answers: map[string]*answer[T]{}}
}

// get returns the answer for key, asking if there is none. forGood is true if it never changes.
func (l *lookup[T]) get(ctx context.Context, key string, forGood bool, ask func(context.Context) (T, error)) (T, error) {
	a := l.entry(key)
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		var none T
		return none, driver.NewRefusedError("", "", errors.Wrap(ctx.Err(), "waiting for the answer to the same question of another machine"))
	}
	now := l.clock.Now()
	if now.Before(a.until) {
		return a.value, a.err
	}
	value, err := ask(ctx)
	switch {
	case driver.IsUnresolved(err):
		a.until = now.Add(missTTL)
	case err != nil:
		return value, err
	case forGood:
		a.until = now.AddDate(100, 0, 0)
	default:
		a.until = now.Add(l.ttl)
	}
	a.value, a.err = value, err
	return value, err
}

func (l *lookup[T]) entry(key string) *answer[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.answers[key]
	if !ok {
		a = &answer[T]{turn: make(chan struct{}, 1)}
		l.answers[key] = a
	}
	return a
}
