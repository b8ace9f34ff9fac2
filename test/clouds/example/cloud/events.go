package cloud

import (
	"container/heap"
	"time"
)

// event is what happens at a time, with the first call after it.
type event struct {
	at    time.Time
	order int
	do    func(at time.Time)
}

// events are those in the future, the next one first.
type events []event

func (e events) Len() int { return len(e) }

func (e events) Less(i, j int) bool {
	if e[i].at.Equal(e[j].at) {
		return e[i].order < e[j].order
	}
	return e[i].at.Before(e[j].at)
}

func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

func (e *events) Push(x any) { *e = append(*e, x.(event)) }

func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = event{}
	*e = (*e)[:len(*e)-1]
	return last
}

// at schedules something.
func (c *Cloud) at(t time.Time, do func(at time.Time)) {
	c.sequence++
	heap.Push(&c.events, event{at: t, order: c.sequence, do: do})
}

// advance executes what is due, in order, each with the time at which it was due.
func (c *Cloud) advance() {
	now := c.now()
	for len(c.events) > 0 && !c.events[0].at.After(now) {
		due := heap.Pop(&c.events).(event)
		due.do(due.at)
	}
}

// NextChange returns when the state changes next by itself; false if it does not. A test with a fake clock steps to it.
func (c *Cloud) NextChange() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	if len(c.events) == 0 {
		return time.Time{}, false
	}
	return c.events[0].at, true
}
