// Package inventory keeps the latest known state of all instances of a scope, read by one paginated
// list for all machines, and wakes the machines whose instance changed.
//
// A scope is listed every few seconds while one of its machines waits for a change that is due (an instance
// starting or ending), less often the longer that stays away, and every minute or two otherwise; never while no machine is
// tracked in it.
package inventory

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
)

// Lister is the part of a Driver that the inventory needs.
type Lister interface {
	List(ctx context.Context, scope driver.Scope) ([]driver.Instance, error)
}

// Options of an Inventory.
type Options struct {
	// Clock for intervals.
	Clock clock.WithTicker
	// Fast is the time between two lists while a machine waits for a change; a tenth of the wait once that is longer.
	Fast time.Duration
	// Slow is the time between two lists otherwise; it varies by a tenth, so that the scopes of many
	// installations do not list in step.
	Slow time.Duration
	// Timeout of one list, all its pages together.
	Timeout time.Duration
	// StatusInterval is the time between two lists of statuses, if the lister is a driver.StatusLister. Default:
	// driver.DefaultStatusInterval.
	StatusInterval time.Duration
	// Listed, if it is set, gets the instances of each list that has succeeded, but for failure domains that did not answer. It must not
	// block.
	Listed func(driver.Scope, []driver.Instance)
	// UnreachableAfter is for how long lists have to fail before a View has an Outage. Default: 5 minutes; never less than three
	// times Slow.
	UnreachableAfter time.Duration
	// Random returns a random time below another one, by which intervals are spread. Default: rand.N.
	Random func(below time.Duration) time.Duration
}

// View is what the inventory knows of one instance.
type View struct {
	// Instance as last seen; meaningful if Known.
	Instance driver.Instance
	// Known is true if the instance is in the latest list, or was added by the one who launched it
	// and the cloud does not list it yet.
	Known bool
	// Listed is true if the instance is in the latest list, or in the latest one that had its failure domain.
	Listed bool
	// EverListed is true if any list has shown the instance since the machine is tracked.
	EverListed bool
	// Others are further instances in the latest list that carry the mark of the handle and have not ceased to exist, by
	// provider ID.
	Others []driver.Instance
	// ListedAt is when the latest list began that has what is where the instance is; zero before the first one. Where a failure domain
	// does not answer, that is earlier there than elsewhere, and absence means no more than it did then.
	ListedAt time.Time
	// Err is why the latest list failed, or lacks the instance's failure domain; nil if neither.
	Err error
	// Outage is set once lists have failed for long.
	Outage *Outage
}

// Inventory of all scopes. It implements manager.Runnable.
type Inventory struct {
	lister Lister
	opts   Options
	wake   *wake.Waker

	mu     sync.Mutex
	ctx    context.Context // set by Start; nil before
	scopes map[driver.Scope]*scope
	where  map[types.NamespacedName]driver.Scope
}

// New returns an Inventory that lists nothing before Start.
func New(lister Lister, opts Options) *Inventory {
	return &Inventory{
		lister: lister,
		opts:   opts,
		wake:   wake.New(),
		scopes: map[driver.Scope]*scope{},
		where:  map[types.NamespacedName]driver.Scope{},
	}
}

// Start lists until ctx is done.
func (i *Inventory) Start(ctx context.Context) error {
	i.mu.Lock()
	i.ctx = ctx
	for _, s := range i.scopes {
		s.start(ctx)
	}
	i.mu.Unlock()
	measured.add(i)
	defer measured.remove(i)
	<-ctx.Done()
	return nil
}

// NeedLeaderElection is true: only the leader asks the cloud.
func (i *Inventory) NeedLeaderElection() bool { return true }

// Track makes the machine key known by the handle of its instance and returns what is known of it.
// While inTransition, the scope is listed fast, and slower the longer nothing changes. The machine is woken whenever the View changes,
// and after an Outage has begun or ended, ten machines of a scope in a second.
func (i *Inventory) Track(key types.NamespacedName, handle driver.Handle, inTransition bool) View {
	i.mu.Lock()
	defer i.mu.Unlock()
	if old, ok := i.where[key]; ok && old != handle.Scope {
		i.scopes[old].forget(key)
	}
	i.where[key] = handle.Scope
	return i.scope(handle.Scope).track(key, handle, inTransition)
}

// Put adds an instance that the cloud has just returned in answer to another call; the next list
// that holds the instance replaces it.
func (i *Inventory) Put(name driver.Scope, instance driver.Instance) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.scope(name).putIn(instance)
}

// Owned returns an instance in the latest list that carries the mark of the handle and has not ceased to exist. It asks for
// no list.
func (i *Inventory) Owned(handle driver.Handle) (driver.Instance, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s, ok := i.scopes[handle.Scope]
	if !ok {
		return driver.Instance{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	owned := s.others(handle, "")
	if len(owned) == 0 {
		return driver.Instance{}, false
	}
	return owned[0], true
}

// Forget ends the tracking of key.
func (i *Inventory) Forget(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if name, ok := i.where[key]; ok {
		i.scopes[name].forget(key)
		delete(i.where, key)
	}
}

// Scopes returns all scopes in which a machine has been tracked.
func (i *Inventory) Scopes() []driver.Scope {
	i.mu.Lock()
	defer i.mu.Unlock()
	names := make([]driver.Scope, 0, len(i.scopes))
	for name := range i.scopes {
		names = append(names, name)
	}
	return names
}

// Tracks returns whether key is tracked.
func (i *Inventory) Tracks(key types.NamespacedName) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, tracked := i.where[key]
	return tracked
}

// Source feeds a controller with the machines whose instance changed.
func (i *Inventory) Source() source.Source { return i.wake.Source() }

// scope returns the scope of that name, and begins to list it if it is new. i.mu is held.
func (i *Inventory) scope(name driver.Scope) *scope {
	s, ok := i.scopes[name]
	if !ok {
		s = newScope(name, i.lister, i.opts, i.wake)
		i.scopes[name] = s
		if i.ctx != nil {
			s.start(i.ctx)
		}
	}
	return s
}
