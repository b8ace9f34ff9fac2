package inframachine

import (
	"sync"
	"time"

	"millwright.dev/contracts/controller/outcome"
)

// overlap is for how long a process that has lost its lease may still write what it has read before: that of a lease, and of a call under
// way.
const overlap = time.Minute

// begun is when this process has begun to reconcile, which it does once it is the leader.
type begun struct {
	once sync.Once
	at   time.Time
}

func (b *begun) since(now time.Time) time.Time {
	b.once.Do(func() { b.at = now })
	return b.at
}

// lookAgain has each object that is reconciled soon after this process has begun looked at once more, when the process before it has
// certainly ended: that one may write last what it knows of an instance, and such a write of a status enqueues nothing. It reads caches
// alone.
func (r *Reconciler[M]) lookAgain(now time.Time) outcome.Outcome {
	if left := r.begun.since(now).Add(overlap).Sub(now); left > 0 {
		return outcome.ContinueAfter(left)
	}
	return outcome.Continue()
}
