package drain

import (
	"context"
)

// sender sends the requests of one drain, a bounded number at once. It is guarded by the drain's mu.
type sender struct {
	// ctx ends when what is under way is to be cut off.
	ctx    context.Context
	cancel context.CancelFunc
	// queue holds the requests that wait for a worker.
	queue   []sending
	workers int
}

// sending is one request, with the attempt that its answer is recorded in.
type sending struct {
	attempt *attempt
	send    func(context.Context) error
}

// stop cuts off what is under way and drops the rest. Later requests go their way with workers of their own.
func (s *sender) stop() {
	if s.cancel != nil {
		s.cancel()
	}
	*s = sender{}
}

// send has a request sent as soon as a worker is free. It is called under mu.
func (n *nodeDrain) send(a *attempt, request func(context.Context) error) {
	if n.stopped {
		return
	}
	a.inFlight = true
	if n.sender.ctx == nil {
		n.sender.ctx, n.sender.cancel = context.WithCancel(n.ctx)
	}
	n.sender.queue = append(n.sender.queue, sending{a, request})
	if n.sender.workers < n.drainer.options.MaxParallelEvictions {
		n.sender.workers++
		ctx := n.sender.ctx
		n.drainer.spawn(func() { n.work(ctx) })
	}
}

// work sends requests until the queue is empty. The last worker looks at what has come of it, so that one look
// serves all.
func (n *nodeDrain) work(ctx context.Context) {
	for {
		next, last := n.nextSending(ctx)
		if next.send == nil {
			if last {
				n.changed()
			}
			return
		}
		err := next.send(ctx)
		n.answered(ctx, next.attempt, toOutcome(err))
	}
}

// nextSending takes the next request; without one, it signs the worker off and reports whether it was the last. A
// worker whose context has ended belongs to a sender that was stopped.
func (n *nodeDrain) nextSending(ctx context.Context) (next sending, last bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return sending{}, false
	}
	if len(n.sender.queue) == 0 {
		n.sender.workers--
		return sending{}, n.sender.workers == 0
	}
	next = n.sender.queue[0]
	n.sender.queue = n.sender.queue[1:]
	return next, false
}

// answered records an answer, unless the request was cut off.
func (n *nodeDrain) answered(ctx context.Context, a *attempt, answer outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if answer.ok {
		a.granted(n.now())
		a.gone = answer.gone
		return
	}
	options := &n.drainer.options
	a.refused(n.now(), answer, options.MinRetry, options.MaxRetry)
	if answer.budget != "" || answer.several {
		n.target.budgets.join(n)
	}
}
