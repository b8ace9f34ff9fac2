package inframachine

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// turnRetry is when an object asks again for its turn if it was not woken; spread by a fifth.
const turnRetry = 5 * time.Second

// turns keep one scope of the cloud that hangs from taking all workers. In each scope only so many reconciles at once may
// call the cloud as its share allows. What is beyond waits outside of a worker, and is woken when one has ended.
type turns struct {
	share int
	wake  func(types.NamespacedName)

	mu     sync.Mutex
	scopes map[driver.Scope]*turnsOfScope
}

type turnsOfScope struct {
	underWay int
	waiting  []types.NamespacedName
}

// newTurns gives each scope a quarter of the workers, and at least one.
func newTurns(workers int, wake func(types.NamespacedName)) *turns {
	return &turns{share: max(workers/4, 1), wake: wake, scopes: map[driver.Scope]*turnsOfScope{}}
}

// enter says whether the object may call the cloud now; it has to leave afterwards. It never waits.
func (t *turns) enter(name driver.Scope, key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	scope, ok := t.scopes[name]
	if !ok {
		scope = &turnsOfScope{}
		t.scopes[name] = scope
	}
	at := slices.Index(scope.waiting, key)
	if scope.underWay < t.share {
		scope.underWay++
		if at >= 0 {
			scope.waiting = slices.Delete(scope.waiting, at, at+1)
		}
		return true
	}
	if at < 0 {
		scope.waiting = append(scope.waiting, key)
	}
	return false
}

// leave ends a turn, and wakes as many as there are turns.
func (t *turns) leave(name driver.Scope) {
	t.mu.Lock()
	defer t.mu.Unlock()
	scope := t.scopes[name]
	scope.underWay--
	next := scope.waiting[:min(len(scope.waiting), t.share-scope.underWay)]
	for _, key := range next {
		t.wake(key)
	}
	scope.waiting = slices.Delete(scope.waiting, 0, len(next))
	if scope.underWay == 0 && len(scope.waiting) == 0 {
		delete(t.scopes, name)
	}
}

// takeTurn lets the object call the cloud until its reconcile ends, or has it come back. Its conditions stay as they are: those
// that call say what is wrong with the scope.
func (r *Reconciler[M]) takeTurn(_ context.Context, s *scope[M]) outcome {
	if s.calling || r.turns.enter(s.handle.Scope, s.key) {
		s.calling = true
		return proceed()
	}
	return untilDeadline(turnRetry + rand.N(turnRetry/5))
}

// endTurn is called when the reconcile ends.
func (r *Reconciler[M]) endTurn(s *scope[M]) {
	if s.calling {
		r.turns.leave(s.handle.Scope)
	}
}
