package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"millwright.dev/providers/driver"
)

const guardPeriod = 100 * time.Millisecond

// guard watches all instances: none may end while its object is there and not being deleted, unless an action has ended it. Objects in
// deletion never come back, so one that is there right after the end of its instance was there before.
type guard struct {
	mu sync.Mutex
	// alive are the instances of the last look, excused those that an action has terminated, by provider ID.
	alive   map[string]machine
	excused sets.Set[string]
	// suspects have ended, and the API server has not said yet whether their objects are there.
	suspects []machine
	found    []string
}

func newGuard() *guard { return &guard{alive: map[string]machine{}, excused: sets.New[string]()} }

// excuse is called before an action terminates an instance.
func (g *guard) excuse(providerID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.excused.Insert(providerID)
}

// look records which instances have ended since the last look, and reports whether objects have to be read.
func (g *guard) look(now []machine) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.alive
	g.alive = make(map[string]machine, len(now))
	for _, m := range now {
		g.alive[m.providerID] = m
		delete(before, m.providerID)
	}
	for id, m := range before {
		if !g.excused.Has(id) {
			g.suspects = append(g.suspects, m)
		}
	}
	return len(g.suspects) > 0
}

// judge compares those that have ended with the objects that claim instances now, by UID.
func (g *guard) judge(claims map[types.UID]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.suspects {
		if name, ok := claims[m.owner]; ok {
			g.found = append(g.found, fmt.Sprintf("the instance %s of %s has ended at %s, and its object is there and not being deleted",
				m.id, name, time.Now().Format("15:04:05.000")))
		}
	}
	g.suspects = nil
}

// violations are all that was found.
func (g *guard) violations() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.found
}

// watchInstances runs the guard until the context is done.
func (r *run) watchInstances(ctx context.Context) {
	ticker := time.NewTicker(guardPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !r.guard.look(r.account.machines()) {
				continue
			}
			infra := r.cloud.newList()
			if err := r.listAll(ctx, infra); err != nil {
				continue // Asked again: objects in deletion do not come back.
			}
			var objects []driver.Object
			_ = meta.EachListItem(infra, func(item runtime.Object) error {
				objects = append(objects, item.(driver.Object))
				return nil
			})
			r.guard.judge(claims(objects))
		}
	}
}
