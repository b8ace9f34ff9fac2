package orphans

import (
	"cmp"
	"context"
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// parallel is how many scopes are worked on at a time: one that hangs takes one of them, until its time is over.
const parallel = 16

// kindInstance is the Kind of instances.
const kindInstance = "instance"

// list is what the cloud lists in one scope.
type list struct {
	scope driver.Scope
	found []Found
	// err is why it has not all there is. With a driver.Incomplete, found is what there is in the failure domains that answered.
	err error
}

// key identifies something in a scope from scan to scan.
func (f Found) key() string { return f.Kind + " " + f.ProviderID }

// hasOurs returns whether the scope is to be remembered: something in it may be ours.
func (l *list) hasOurs(w *World) bool {
	for _, f := range l.found {
		if lineage, ok := driver.ParseLineage(f.Lineage); ok {
			if cluster, here := w.Clusters[lineage.Cluster]; here && !w.denies(l.scope, cluster.Namespace) {
				return true
			}
		}
	}
	return false
}

// listAll lists all scopes, several at a time.
func (c *Collector) listAll(ctx context.Context) []*list {
	names := map[driver.Scope]bool{}
	for _, s := range c.Store.Scopes() {
		names[s] = true
	}
	if c.Tracked != nil {
		for _, s := range c.Tracked() {
			names[s] = true
		}
	}
	listed := make([]*list, 0, len(names))
	for name := range names {
		listed = append(listed, &list{scope: name})
	}
	c.keepScopes(names)
	c.each(listed, func(l *list) { l.found, l.err = c.list(ctx, l.scope) })
	return listed
}

// keepScopes forgets the scopes that are not looked at any more.
func (c *Collector) keepScopes(names map[driver.Scope]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.scopes, func(name driver.Scope, s *scope) bool {
		forgotten := !names[name] && !s.busy
		if forgotten {
			assessments.DeletePartialMatch(prometheus.Labels{"kind": c.Kind, "scope": name.String()})
		}
		return forgotten
	})
}

// each does something with each scope, several at a time.
func (c *Collector) each(listed []*list, do func(*list)) {
	turns := make(chan struct{}, parallel)
	var wait sync.WaitGroup
	for _, l := range listed {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			do(l)
		})
	}
	wait.Wait()
}

// list lists one scope. It returns when its time is over, also if the driver does not.
func (c *Collector) list(ctx context.Context, name driver.Scope) ([]Found, error) {
	allowed := c.mayUse(ctx, name, "")
	c.mu.Lock()
	s := c.scope(name)
	if !allowed {
		c.mu.Unlock()
		return nil, errNotAllowed
	}
	busy := s.busy
	s.busy = true
	c.mu.Unlock()
	if busy {
		return nil, errHangs
	}
	ctx, cancel := context.WithTimeout(ctx, c.CallTimeout)
	type answer struct {
		found []Found
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		defer cancel()
		var a answer
		a.err = driver.Recover(ctx, "List", func() (err error) {
			a.found, err = c.listNow(ctx, name)
			return err
		})
		c.mu.Lock()
		s.busy = false
		c.mu.Unlock()
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.found, a.err
	case <-ctx.Done():
		select {
		case a := <-answers:
			return a.found, a.err
		default:
			return nil, ctx.Err()
		}
	}
}

func (c *Collector) listNow(ctx context.Context, name driver.Scope) ([]Found, error) {
	instances, err := c.Cloud.List(ctx, name)
	found := make([]Found, 0, len(instances))
	for _, i := range instances {
		found = append(found, Found{Kind: kindInstance, Scope: name, Instance: i})
	}
	if err != nil || c.Leftovers == nil {
		return found, err // Without all instances it is not known what is left of which.
	}
	leftovers, err := c.Leftovers.ListLeftovers(ctx, name)
	return append(found, withoutOwners(name, leftovers, instances)...), err
}

// withoutOwners returns what is left behind by instances that do not exist any more. What is beside one that does may be about to be
// attached to it.
func withoutOwners(in driver.Scope, leftovers []driver.Leftover, instances []driver.Instance) []Found {
	alive := map[types.UID]bool{}
	for _, i := range instances {
		if i.State != driverv1.InstanceTerminated {
			alive[i.OwnerUID] = true
		}
	}
	var found []Found
	for _, l := range leftovers {
		if !alive[l.OwnerUID] {
			found = append(found, Found{Kind: l.Kind, Scope: in, Instance: driver.Instance{
				ID: l.ID, ProviderID: l.Kind + " " + l.ID, OwnerUID: l.OwnerUID, Owner: l.Owner, Lineage: l.Lineage, LaunchTime: l.Created,
				State: driverv1.InstanceStopped,
			}})
		}
	}
	return found
}

// usable logs what is wrong with a list. A partial one lacks the failure domains that did not answer; one that is not usable says nothing.
func (l *list) usable(ctx context.Context) (partial, usable bool) {
	switch {
	case driver.AsIncomplete(l.err) != nil:
		ctrl.LoggerFrom(ctx).Error(l.err, "A scan for orphans concludes nothing about the failure domains that did not answer")
		return true, true
	case l.err != nil:
		ctrl.LoggerFrom(ctx).Error(l.err, "A scan for orphans concludes nothing about a scope, since it cannot be listed")
		return false, false
	}
	return false, true
}

// judge concludes what follows from the list of one scope, and does it.
func (c *Collector) judge(ctx context.Context, w *World, l *list, budget *budget) {
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues("scope", l.scope.String()))
	c.mu.Lock()
	s := c.scope(l.scope)
	c.mu.Unlock()
	partial, usable := l.usable(ctx)
	if !usable {
		clear(s.seen)
		return
	}
	counts, seen, now := map[Assessment]int{}, map[string]Observation{}, map[string]Assessment{}
	var due []*candidate
	for _, f := range l.found {
		before := s.seen[f.key()]
		assessment := Decide(w, f, before)
		counts[assessment]++
		switch assessment {
		case Ended, Claimed, Foreign, NotAllowed, Paused:
			continue // Nor does what was seen while the Cluster was paused count once it is not: its objects may be about to come back.
		}
		seen[f.key()] = before.next(w, f)
		if assessment == Orphan && c.Options.Policy != PolicyReport {
			now[f.key()] = s.reported[f.key()]
			due = append(due, &candidate{Found: f, seen: before, tried: now[f.key()].ofDeletion()})
			continue
		}
		if now[f.key()] = s.reported[f.key()]; now[f.key()] != assessment {
			c.report(ctx, w, f, assessment)
			now[f.key()] = assessment
		}
	}
	if partial {
		// What is not listed is not gone, and not to be reported again; its observations begin again.
		for key := range s.reported {
			now[key] = cmp.Or(now[key], s.reported[key])
		}
	}
	s.seen, s.reported = seen, now
	measure(c.Kind, l.scope, counts)
	c.remark(ctx, w, l)
	c.collect(ctx, w, l, due, budget)
	if !partial {
		c.mu.Lock()
		s.since = w.Now
		c.mu.Unlock()
	}
}
