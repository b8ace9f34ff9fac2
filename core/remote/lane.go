package remote

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	shared "millwright.dev/contracts/remote"
)

const (
	// laneLimit is how many requests with one verb are under way to a target cluster at once; others wait for their turn.
	laneLimit = 20
	// unansweredLimit is how many requests in a row time out until a target cluster counts as one that does not answer.
	unansweredLimit = 3
	// answerLife is how long an answer is kept that nothing asks for any more.
	answerLife = 2 * time.Minute
)

// lane sends the requests with one verb to one target cluster, each in a goroutine of its own and a bounded number at once,
// so that no worker of a controller ever waits for a target cluster: a caller that asks for something gets a *PendingError, is woken
// when there is an answer, and gets it when it asks again. A request that times out is sent again in its turn, for as long as
// its owner does not withdraw it. While none is answered, one at a time tries.
type lane struct {
	verb    string
	options *shared.Options
	// wake is called when the owner of a request has an answer; turned when the server begins or ceases to answer. Both
	// are called without a lock and must not block.
	wake   func(owner types.NamespacedName)
	turned func()
	// direct has requests sent in the goroutine of the caller.
	direct bool

	mu sync.Mutex
	// ctx ends with the connection.
	ctx context.Context
	// calls are the requests by the name of their owner; a name has one at most.
	calls map[types.NamespacedName]*call
	// waiting are those that are not under way, in order; running counts those that are.
	waiting []*call
	running int
	// timeouts counts the requests in a row that were not answered in time, since unanswered.
	timeouts   int
	unanswered time.Time
	timedOut   uint64
}

// Owner is who asks for something: a Machine. One of the same name with another UID is another one, which neither gets the
// answer of the first nor sends what that had asked for.
type Owner struct {
	types.NamespacedName
	UID types.UID
}

// call is one request.
type call struct {
	owner Owner
	request
	// since is when its owner asked for it first.
	since time.Time
	// sent means that it is under way, done that it was answered, at that time.
	sent bool
	done time.Time
	node *corev1.Node
	err  error
}

// request is what an owner wants to be sent.
type request struct {
	// id distinguishes requests of one owner.
	id string
	// object names what it is about.
	object string
	// forget drops the answer when it is no error: then it is known by other means.
	forget bool
	// allowed, if set, may refuse a request that is not under way yet.
	allowed func(now time.Time) error
	send    func(context.Context) (*corev1.Node, error)
}

// begin allows requests until ctx ends.
func (l *lane) begin(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx = ctx
}

// ask returns the answer to a request, or a *PendingError while there is none. It never blocks. An owner that asks for
// something else withdraws what it asked for before, unless that is under way; also when what it asks for now is not allowed.
func (l *lane) ask(owner Owner, wanted request) (*corev1.Node, error) {
	if l.direct {
		return wanted.send(context.Background())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil || l.ctx.Err() != nil {
		return nil, &shared.NotConnectedError{Reason: shared.NotDialledYet, Message: "the connection was closed"}
	}
	known := l.calls[owner.NamespacedName]
	if known != nil && known.owner != owner {
		l.drop(known)
		known = nil
	}
	if known != nil && known.sent {
		return nil, l.pending(known)
	}
	if known != nil && !known.done.IsZero() {
		l.drop(known)
		if known.id == wanted.id {
			return known.node, known.err
		}
		known = nil
	}
	now := l.options.Clock.Now()
	if wanted.allowed != nil {
		if err := wanted.allowed(now); err != nil {
			l.drop(known)
			return nil, err
		}
	}
	if known != nil {
		known.request = wanted
		return nil, l.pending(known)
	}
	created := &call{owner: owner, request: wanted, since: now}
	if l.calls == nil {
		l.calls = map[types.NamespacedName]*call{}
	}
	l.calls[owner.NamespacedName] = created
	l.waiting = append(l.waiting, created)
	l.sendNext()
	return nil, l.pending(created)
}

// withdraw forgets what the owner of a name has asked for. What is under way ends by itself, and nothing is notified.
func (l *lane) withdraw(owner types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(l.calls[owner])
}

// drop forgets a request, if it is one. It is called under mu.
func (l *lane) drop(c *call) {
	if c == nil {
		return
	}
	delete(l.calls, c.owner.NamespacedName)
	l.waiting = slices.DeleteFunc(l.waiting, func(other *call) bool { return other == c })
}

// pending is called under mu.
func (l *lane) pending(c *call) *PendingError {
	return &PendingError{Verb: l.verb, Object: c.object, Since: c.since, Unanswered: l.timeouts >= unansweredLimit}
}

// sendNext sends what may be sent. It is called under mu.
func (l *lane) sendNext() {
	limit := laneLimit
	if l.timeouts >= unansweredLimit {
		limit = 1
	}
	for l.running < limit && len(l.waiting) > 0 {
		next := l.waiting[0]
		l.waiting = l.waiting[1:]
		next.sent = true
		l.running++
		go l.run(l.ctx, next, next.send)
	}
}

// run sends one request, in its goroutine.
func (l *lane) run(connection context.Context, c *call, send func(context.Context) (*corev1.Node, error)) {
	ctx, cancel := context.WithTimeout(connection, l.options.RequestTimeout)
	node, err := send(ctx)
	late := err != nil && (ctx.Err() != nil || isTimeout(err))
	cancel()
	if connection.Err() != nil {
		// Waiters are notified of the end of the connection.
		return
	}
	wake, turned := l.finish(c, node, err, late)
	if wake {
		l.wake(c.owner.NamespacedName)
	}
	if turned {
		l.turned()
	}
}

// finish records what a request has ended with, and returns who is to be notified.
func (l *lane) finish(c *call, node *corev1.Node, err error, late bool) (wake, turned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		l.sendNext()
		turned = l.rest() || turned
	}()
	now := l.options.Clock.Now()
	l.running--
	c.sent = false
	turned = l.count(late, now)
	l.sweep(now)
	if l.calls[c.owner.NamespacedName] != c {
		return false, turned
	}
	if late {
		l.waiting = append(l.waiting, c)
		return false, turned
	}
	c.node, c.err, c.done, c.send = node, err, now, nil
	if err == nil && c.forget {
		l.drop(c)
	}
	return true, turned
}

// count records whether a request was answered in time, and returns whether that turns the lane. It is called under mu.
func (l *lane) count(late bool, now time.Time) (turned bool) {
	if !late {
		turned = l.timeouts >= unansweredLimit
		l.timeouts = 0
		return turned
	}
	if l.timeouts == 0 {
		l.unanswered = now.Add(-l.options.RequestTimeout)
	}
	l.timeouts++
	l.timedOut++
	return l.timeouts == unansweredLimit
}

// rest has the server no longer count as one that does not answer when nothing is asked of it any more, and returns whether that turns the
// lane: the answer that would show it never comes, and nothing would be replaced for ever. It is called under mu.
func (l *lane) rest() (turned bool) {
	if l.running > 0 {
		return false
	}
	turned = l.timeouts >= unansweredLimit
	l.timeouts = 0
	return turned
}

// sweep drops answers that nothing asks for. It is called under mu.
func (l *lane) sweep(now time.Time) {
	for owner, c := range l.calls {
		if !c.done.IsZero() && now.Sub(c.done) > answerLife {
			delete(l.calls, owner)
		}
	}
}

// unansweredSince returns since when no request is answered, the zero time while they are.
func (l *lane) unansweredSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timeouts < unansweredLimit {
		return time.Time{}
	}
	return l.unanswered
}

// load returns how many requests are under way, how many wait, and how many have timed out so far.
func (l *lane) load() shared.Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return shared.Load{Verb: l.verb, Sent: l.running, Waiting: len(l.waiting), TimedOut: l.timedOut}
}

// isTimeout reports whether an error is about time that has run out on this side. An API server that reports one has answered.
func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}
