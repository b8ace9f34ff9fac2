package limit

import (
	"cmp"
	"slices"
	"time"
)

const (
	// holdToken is for how long after its turn a token is held for an object that does not come back: longer than a busy
	// controller needs to come to it.
	holdToken = 5 * time.Second
	// keepPlace is for how long after its turn an object keeps its place in the queue.
	keepPlace = 10 * time.Minute
)

// waiter is a call that waits for its turn.
type waiter struct {
	bucket *bucket
	// number is its place in the queue, which is in this order; zero while it is in none.
	number uint64
	// since is when it began to wait.
	since time.Time
	// due is when it was asked to come back.
	due time.Time
}

// queue holds those that wait, the first to come first.
type queue struct {
	waiting []*waiter
	last    uint64
	// changed, if not nil, is closed when those that block have to look again.
	changed chan struct{}
}

// find returns the index of a waiter; of one that is not in the queue, where it would come.
func (q *queue) find(w *waiter) int {
	if w.number == 0 {
		return len(q.waiting)
	}
	i, _ := slices.BinarySearchFunc(q.waiting, w.number, func(other *waiter, number uint64) int {
		return cmp.Compare(other.number, number)
	})
	return i
}

// ahead returns for how many tokens are held before this one's turn.
func (q *queue) ahead(w *waiter, now time.Time) int {
	n, held := 0, now.Add(-holdToken)
	for _, other := range q.waiting[:q.find(w)] {
		if !other.due.Before(held) {
			n++
		}
	}
	return n
}

// join gives a waiter the last place.
func (q *queue) join(w *waiter, now time.Time) {
	q.last++
	w.number, w.since = q.last, now
	q.waiting = append(q.waiting, w)
}

// remove takes a waiter from the queue, if it is there.
func (q *queue) remove(w *waiter) {
	if w.number == 0 {
		return
	}
	i := q.find(w)
	q.waiting = slices.Delete(q.waiting, i, i+1)
	w.number = 0
}

// giveUp removes a waiter without its turn: those behind it may go earlier.
func (q *queue) giveUp(w *waiter) {
	if w.number == 0 {
		return
	}
	last := q.waiting[len(q.waiting)-1] == w
	q.remove(w)
	if !last {
		q.notify()
	}
}

// changes returns a channel that is closed by the next notify.
func (q *queue) changes() <-chan struct{} {
	if q.changed == nil {
		q.changed = make(chan struct{})
	}
	return q.changed
}

// notify has those that block look again.
func (q *queue) notify() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}
}
