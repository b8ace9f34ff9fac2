package machineset

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// groupLocks serializes reads and changes of a group of sets. A waiter gives up when its context ends. The zero value is ready for use,
// and holds no entry for a group that is not in use.
type groupLocks struct {
	mu sync.Mutex
	of map[types.UID]*groupLock
}

// groupLock is the lock of a group that is in use. users counts its holder and waiters.
type groupLock struct {
	token chan struct{}
	users int
}

// lock waits for the lock of a group; unlock gives it back.
func (g *groupLocks) lock(ctx context.Context, group types.UID) (unlock func(), err error) {
	held := g.join(group)
	select {
	case held.token <- struct{}{}:
		return func() {
			<-held.token
			g.leave(group, held)
		}, nil
	case <-ctx.Done():
		g.leave(group, held)
		return nil, context.Cause(ctx)
	}
}

func (g *groupLocks) join(group types.UID) *groupLock {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[types.UID]*groupLock{}
	}
	if g.of[group] == nil {
		g.of[group] = &groupLock{token: make(chan struct{}, 1)}
	}
	g.of[group].users++
	return g.of[group]
}

func (g *groupLocks) leave(group types.UID, held *groupLock) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if held.users--; held.users == 0 {
		delete(g.of, group)
	}
}

// users are those who hold the lock of a group or wait for it.
func (g *groupLocks) users(group types.UID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of[group] == nil {
		return 0
	}
	return g.of[group].users
}
