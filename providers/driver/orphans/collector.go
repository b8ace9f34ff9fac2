package orphans

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
)

// Cloud is the part of a driver.Driver that the collector needs. Its calls are within the cloud's limits.
type Cloud interface {
	Traits() driver.Traits
	List(ctx context.Context, scope driver.Scope) ([]driver.Instance, error)
	Observe(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance]
	Delete(ctx context.Context, scope driver.Scope, handles []driver.Handle) []error
	Cleanup(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[[]string]
}

// Collector looks for orphans in all scopes, and ends them. It implements manager.Runnable; only the leader runs it. Its fields are set
// before Start.
type Collector struct {
	// Kind of the objects, for example AWSMachine.
	Kind string
	// APIReader reads from the API server itself.
	APIReader client.Reader
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock for periods and ages.
	Clock clock.WithTicker
	// Cloud is the driver.
	Cloud Cloud
	// Remarker writes lineages, and Leftovers lists what has outlived its instance; nil where the driver does not.
	Remarker  driver.Remarker
	Leftovers driver.LeftoverLister
	// NewList returns an empty list of the objects; Claim says what one of them claims.
	NewList func() client.ObjectList
	Claim   func(context.Context, client.Object) Claim
	// MayUse returns whether the identity of a scope may be used for a namespace or, if that is empty, for any namespace that has a Cluster;
	// nil if there are no identities.
	MayUse func(ctx context.Context, in driver.Scope, namespace string) bool
	// Tracked returns the scopes that are known from elsewhere; nil for none.
	Tracked func() []driver.Scope
	// VisibilityGrace and CallTimeout are those of the reconciler.
	VisibilityGrace, CallTimeout time.Duration
	// Store has the record, and gives out marks.
	Store *Store
	// Options of behaviour.
	Options Options

	mu     sync.Mutex
	scopes map[driver.Scope]*scope
	// concluded is when the latest scan began that could read the API server, or when this process has begun to try.
	concluded time.Time
}

// scope is what is remembered of one scope from scan to scan.
type scope struct {
	// busy is true while a list of it is in progress, also one that does not end although its time is over.
	busy bool
	// seen are the observations of the scans before, by key.
	seen map[string]Observation
	// reported are the assessments that were reported, by key.
	reported map[string]Assessment
	// since is when the latest complete scan began or, without one, when the scope was first looked at.
	since time.Time
}

// NeedLeaderElection is true: only the leader ends anything.
func (c *Collector) NeedLeaderElection() bool { return true }

// Waits between two attempts to read the record.
const firstRetry, lastRetry = 5 * time.Second, 5 * time.Minute

// Start reads the record and scans until ctx is done.
func (c *Collector) Start(ctx context.Context) error {
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithName("orphans").WithValues("kind", c.Kind))
	c.concludedAt(c.Clock.Now())
	ages.add(c)
	defer ages.remove(c)
	for retry := firstRetry; ctx.Err() == nil; retry = min(2*retry, lastRetry) {
		err := c.Store.Begin(ctx)
		if err == nil {
			break
		}
		ctrl.LoggerFrom(ctx).Error(err, "The record of the installation cannot be read or written: instances are launched without its mark, and no orphan is deleted")
		c.sleep(ctx, retry)
	}
	for ctx.Err() == nil {
		c.Scan(ctx)
		tenth := max(c.Options.Period/10, 1)
		c.sleep(ctx, c.Options.Period-tenth/2+rand.N(tenth))
	}
	return nil
}

func (c *Collector) sleep(ctx context.Context, d time.Duration) {
	timer := c.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// Scan looks at all scopes once. The cloud is listed first: whatever is in a list had its object before, unless that has been removed
// since.
func (c *Collector) Scan(ctx context.Context) {
	listed := c.listAll(ctx)
	w, err := c.conclude(ctx, listed)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "A scan for orphans concludes nothing")
		scansFailed.WithLabelValues(c.Kind).Inc()
		c.forgetObservations()
		return
	}
	budget := newBudget(maxDeletions)
	c.each(listed, func(l *list) { c.judge(ctx, w, l, budget) })
}

// conclude reads what the API server has, and persists that the scan has come so far.
func (c *Collector) conclude(ctx context.Context, listed []*list) (*World, error) {
	began := c.Clock.Now()
	generations, err := c.generations(ctx)
	if err != nil {
		return nil, err
	}
	w, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	w.Before = generations
	var all []Found
	scopes := w.Claims.scopes
	for _, l := range listed {
		all = append(all, l.found...)
		if l.hasOurs(w) {
			scopes[l.scope] = true
		}
	}
	w.Claims.list(all)
	record, err := c.Store.Checkpoint(ctx, began, slices.Collect(maps.Keys(scopes)), func(next Record) Record {
		return next.examined(w, began, listed)
	})
	if err != nil {
		return nil, err
	}
	w.persisted(record)
	c.concludedAt(began)
	return w, nil
}

func (c *Collector) concludedAt(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.concluded = at
}

// forgetObservations starts again: what is unclaimed must be seen in scans of which none has failed in between.
func (c *Collector) forgetObservations() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.scopes {
		clear(s.seen)
	}
}

// scope returns what is remembered of a scope. c.mu is held.
func (c *Collector) scope(name driver.Scope) *scope {
	if c.scopes == nil {
		c.scopes = map[driver.Scope]*scope{}
	}
	s, ok := c.scopes[name]
	if !ok {
		s = &scope{seen: map[string]Observation{}, reported: map[string]Assessment{}, since: c.Clock.Now()}
		c.scopes[name] = s
	}
	return s
}

func (c *Collector) mayUse(ctx context.Context, in driver.Scope, namespace string) bool {
	return c.MayUse == nil || c.MayUse(ctx, in, namespace)
}

// grace is for how long something may be unclaimed before that means anything: no launch whose answer is awaited is younger.
func (c *Collector) grace() time.Duration {
	return max(minGrace(), c.VisibilityGrace, 2*c.CallTimeout)
}

// budget is how much may still be deleted of each Cluster.
type budget struct {
	mu   sync.Mutex
	left map[types.UID]int
	each int
}

func newBudget(each int) *budget { return &budget{left: map[types.UID]int{}, each: each} }

// take returns whether one more may be deleted of a Cluster.
func (b *budget) take(cluster types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.left[cluster]; !ok {
		b.left[cluster] = b.each
	}
	b.left[cluster]--
	return b.left[cluster] >= 0
}

var errNotAllowed = errors.New("no namespace that has a Cluster may use the identity of this scope")

var errHangs = errors.New("the list before this one has not ended yet, although its time is over")
