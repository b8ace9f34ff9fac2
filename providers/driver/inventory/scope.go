package inventory

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
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
	listed    map[string]driver.Instance // by provider ID, from the latest list
	marked    map[types.UID][]string     // provider IDs of those that are listed, by the UID of their mark
	put       map[string]driver.Instance // by provider ID, not in a list yet
	meanwhile map[string]driver.Instance // by provider ID, put since the list under way began; nil without one
	tracked   map[types.NamespacedName]*tracked
	listedAt  time.Time
	err       error
	failures  int // lists that failed since the last one that did not
	// activeSince is when the first machine was tracked, also after there was none for a while.
	activeSince time.Time
	outage      *Outage
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
}

func newScope(name driver.Scope, lister Lister, opts Options, waker *wake.Waker) *scope {
	return &scope{
		name: name, lister: lister, opts: opts, wake: waker,
		hurry:   make(chan struct{}, 1),
		listed:  map[string]driver.Instance{},
		put:     map[string]driver.Instance{},
		tracked: map[types.NamespacedName]*tracked{},
	}
}

func (s *scope) track(key types.NamespacedName, handle driver.Handle, inTransition bool) View {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Clock.Now()
	t, ok := s.tracked[key]
	if !ok {
		s.activate(now)
		t = &tracked{since: now, calm: now}
		s.tracked[key] = t
	}
	view, begins := s.view(handle), inTransition && !t.inTransition
	// Whoever stops to wait and begins again within one look at its machine waits for the same.
	if !t.seen.shows(view) || begins && now.Sub(t.calm) > s.opts.Fast {
		t.since = now
	}
	if t.inTransition && !inTransition {
		t.calm = now
	}
	t.handle, t.inTransition, t.seen = handle, inTransition, view
	if begins || !ok {
		s.hasten()
	}
	return t.seen
}

func (s *scope) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.tracked[key]; ok {
		delete(s.put, t.handle.ProviderID)
		delete(s.tracked, key)
	}
}

// putIn replaces what is known of an instance by what the cloud has just answered.
func (s *scope) putIn(instance driver.Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meanwhile != nil {
		s.meanwhile[instance.ProviderID] = instance
	}
	if _, ok := s.listed[instance.ProviderID]; ok {
		s.listed[instance.ProviderID] = instance
		return
	}
	s.put[instance.ProviderID] = instance
}

// view returns what is known by the handle. s.mu is held.
func (s *scope) view(handle driver.Handle) View {
	v := View{ListedAt: s.listedAt, Err: s.err, Outage: s.outage}
	if i, ok := find(s.listed, handle); ok {
		v.Instance, v.Known, v.Listed = i, true, true
	} else if i, ok := find(s.put, handle); ok {
		v.Instance, v.Known = i, true
	}
	v.Others = s.others(handle, cmp.Or(v.Instance.ProviderID, handle.ProviderID))
	return v
}

// others returns what carries the mark of the handle, without the one of that provider ID. s.mu is held.
func (s *scope) others(handle driver.Handle, but string) []driver.Instance {
	var owned []driver.Instance
	for _, id := range s.marked[handle.OwnerUID] {
		if i := s.listed[id]; id != but && handle.Owns(i) && i.State != driverv1.InstanceTerminated {
			owned = append(owned, i)
		}
	}
	return owned
}

func find(instances map[string]driver.Instance, handle driver.Handle) (driver.Instance, bool) {
	if handle.ProviderID != "" {
		i, ok := instances[handle.ProviderID]
		return i, ok
	}
	for _, i := range instances {
		if handle.Matches(i) {
			return i, true
		}
	}
	return driver.Instance{}, false
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
// become longer by a tenth: it is seen at most that much late, and what never comes costs no more than the slow pace.
func (s *scope) pause() time.Duration {
	now := s.opts.Clock.Now()
	wait, waiting := s.opts.Slow, false
	for _, t := range s.tracked {
		if t.inTransition {
			wait, waiting = min(wait, max(now.Sub(t.since)/10, s.opts.Fast)), true
		}
	}
	if waiting && wait < s.opts.Slow || s.opts.Slow <= s.opts.Fast {
		return min(wait<<min(s.failures, 16), max(s.opts.Slow, s.opts.Fast))
	}
	tenth := s.opts.Slow / 10
	return s.opts.Slow - tenth/2 + rand.N(max(tenth, 1))
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

// list asks the cloud, wakes the machines whose View has changed, and returns the time to the next list.
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
		ctrl.LoggerFrom(ctx).Error(err, "Listing instances failed", "scope", s.name)
	}
	changed, concerned := s.enter(instances, err, began)
	for _, key := range changed {
		s.wake.Enqueue(key)
	}
	s.wakeSlowly(concerned)
	return s.interval()
}

// enter takes the result of a list in. It returns the machines to wake, and those that have to do with an outage alone, which has
// time.
func (s *scope) enter(instances []driver.Instance, err error, began time.Time) (changed, concerned []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.failures++
	if err == nil {
		s.failures = 0
		s.take(instances)
		s.listedAt = began
	}
	s.meanwhile = nil
	reviewed := s.review()
	for key, t := range s.tracked {
		now := s.view(t.handle)
		switch {
		case t.concerns(now):
			changed = append(changed, key)
			t.since = began
		case reviewed:
			concerned = append(concerned, key)
		}
		t.seen = now
	}
	return changed, concerned
}

// take replaces what is listed, but for what the cloud has answered since the list began: that may be newer. s.mu is held.
func (s *scope) take(instances []driver.Instance) {
	s.listed = make(map[string]driver.Instance, len(instances))
	s.marked = make(map[types.UID][]string, len(instances))
	for _, i := range instances {
		if later, ok := s.meanwhile[i.ProviderID]; ok {
			i = later
		}
		s.listed[i.ProviderID] = i
		if i.OwnerUID != "" {
			s.marked[i.OwnerUID] = append(s.marked[i.OwnerUID], i.ProviderID)
		}
		delete(s.put, i.ProviderID)
	}
	for _, ids := range s.marked {
		slices.Sort(ids)
	}
}
