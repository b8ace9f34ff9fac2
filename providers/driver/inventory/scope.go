package inventory

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
)

// scope lists one scope. The fields below mu are shared between the reconciler's workers and the
// goroutine that lists.
type scope struct {
	name   driver.Scope
	lister Lister
	opts   Options
	wake   *wake.Waker
	// hurry wakes the listing goroutine when a machine has begun to wait.
	hurry chan struct{}

	mu        sync.Mutex
	listed    map[string]driver.Instance // by keyOf, from the latest list
	byToken   map[string][]string        // keys of those that are listed
	marked    map[types.UID][]string     // keys of those that are listed, by the UID of their mark
	put       map[string]driver.Instance // by keyOf, not in a list yet
	meanwhile map[string]driver.Instance // by keyOf, put since the list under way began; nil without one
	statuses  map[string]driver.Status   // by provider ID, from the latest list of statuses
	tracked   map[types.NamespacedName]*tracked
	reading                       // of the scope as a whole
	gaps      map[string]*reading // of failure domains that the latest lists lack
	failures  int                 // lists that failed since the last one that did not
	// spellSince is since when some machine or other has been waiting at the fast pace; zero while none does.
	spellSince time.Time
	// activeSince is when the first machine was tracked, also after there was none for a while.
	activeSince time.Time
}

// tracked is a machine and the View that it has seen last.
type tracked struct {
	handle       driver.Handle
	inTransition bool
	seen         View
	// since is when the change that it waits for could first be expected: when it began to wait, or last saw one.
	since time.Time
	// calm is when it last ceased to wait.
	calm time.Time
	// everListed is true if a list has shown the instance of the handle.
	everListed bool
}

func newScope(name driver.Scope, lister Lister, opts Options, waker *wake.Waker) *scope {
	if opts.Random == nil {
		opts.Random = rand.N[time.Duration]
	}
	return &scope{
		name: name, lister: lister, opts: opts, wake: waker,
		hurry:   make(chan struct{}, 1),
		listed:  map[string]driver.Instance{},
		put:     map[string]driver.Instance{},
		tracked: map[types.NamespacedName]*tracked{},
	}
}

func (s *scope) hasten() {
	select {
	case s.hurry <- struct{}{}:
	default:
	}
}

// run lists at once, then whenever the interval has passed, until ctx is done.
func (s *scope) run(ctx context.Context) {
	clk := s.opts.Clock
	wait := s.list(ctx)
	next := clk.Now().Add(wait)
	timer := clk.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hurry:
			wait = s.soonest()
			if !clk.Now().Add(wait).Before(next) {
				continue
			}
			if wait == 0 {
				wait = s.list(ctx)
			}
		case <-timer.C():
			wait = s.list(ctx)
		}
		next = clk.Now().Add(wait)
		timer.Reset(wait)
	}
}

// interval until the next list. With nothing tracked it is the slow one, and list does nothing. After
// failures the fast one doubles up to the slow one.
func (s *scope) interval() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pause()
}

// pause is the interval, with s.mu held. What is awaited is asked for at the fast pace at first, then whenever the wait has
// become longer by a tenth: it is seen at most that much late, and what never comes costs no more than the slow pace. The same holds for
// a long series of machines of which one always waits: each may be seen later than alone, by no more than twice the fast interval.
func (s *scope) pause() time.Duration {
	now := s.opts.Clock.Now()
	wait, waiting := s.opts.Slow, false
	for _, t := range s.tracked {
		if t.inTransition {
			wait, waiting = min(wait, max(now.Sub(t.since)/10, s.opts.Fast)), true
		}
	}
	switch {
	case !waiting || wait > s.opts.Fast || s.failures > 0:
		s.spellSince = time.Time{}
	case s.spellSince.IsZero():
		s.spellSince = now
	default:
		wait = max(wait, min(now.Sub(s.spellSince)/10, 3*s.opts.Fast))
	}
	if waiting && wait < s.opts.Slow || s.opts.Slow <= s.opts.Fast {
		return min(wait<<min(s.failures, 16), max(s.opts.Slow, s.opts.Fast))
	}
	tenth := s.opts.Slow / 10
	return s.opts.Slow - tenth/2 + s.opts.Random(max(tenth, 1))
}

// soonest is when a machine that has just begun to wait may have its answer: what it waits for takes
// at least one interval, but nothing at all is known before the first list.
func (s *scope) soonest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listedAt.IsZero() && s.err == nil {
		return 0
	}
	return s.pause()
}

// list asks the cloud, enqueues the machines whose View has changed, and returns the time to the next list.
func (s *scope) list(ctx context.Context) time.Duration {
	s.mu.Lock()
	idle := len(s.tracked) == 0
	if !idle {
		s.meanwhile = map[string]driver.Instance{}
	}
	s.mu.Unlock()
	if idle {
		return s.interval()
	}
	began := s.opts.Clock.Now()
	listCtx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	var instances []driver.Instance
	err := driver.Recover(ctx, "List", func() (err error) {
		instances, err = s.lister.List(listCtx, s.name)
		return err
	})
	if ctx.Err() != nil {
		return s.interval()
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing instances failed", "scope", s.name.String())
	}
	if (err == nil || driver.AsIncomplete(err) != nil) && s.opts.Listed != nil {
		s.opts.Listed(s.name, instances)
	}
	changed, concerned := s.enter(instances, err, began)
	for _, key := range changed {
		s.wake.Enqueue(key)
	}
	s.wakeSlowly(concerned)
	return s.interval()
}
