package remote

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "millwright.dev/contracts/remote"
)

const (
	// lookupPage is how many Nodes are read by one request.
	lookupPage = 500
	// lookupPages bounds a reading, should a server have pages without end.
	lookupPages = 200
)

// LookUpNodes finds the Nodes with a provider ID in the API server itself, for the rare caller that must not miss one that
// the cache does not have yet; nil when there is none. An API server cannot search by provider ID, so all Nodes are read:
// once for all callers that come while an earlier reading is under way. Like PatchNode it never waits.
func (c *Connection) LookUpNodes(owner Owner, id string) ([]*corev1.Node, error) {
	return c.lookups.ask(owner, id)
}

// readNodes reads all Nodes that have a provider ID, with the fields that the cache has.
func (c *Connection) readNodes(ctx context.Context) (map[string][]*corev1.Node, error) {
	found := map[string][]*corev1.Node{}
	list := &corev1.NodeList{}
	for range lookupPages {
		if err := c.readPage(ctx, list); err != nil {
			return nil, errors.Wrap(err, "listing Nodes")
		}
		for i := range list.Items {
			node, err := trimNode(&list.Items[i])
			if err != nil {
				return nil, err
			}
			if id := list.Items[i].Spec.ProviderID; id != "" {
				found[id] = append(found[id], node.(*corev1.Node))
			}
		}
		if list.Continue == "" {
			return found, nil
		}
	}
	return nil, errors.Errorf("the list of Nodes does not end after %d pages", lookupPages)
}

func (c *Connection) readPage(ctx context.Context, list *corev1.NodeList) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.RequestTimeout)
	defer cancel()
	return c.client.List(ctx, list, client.Limit(lookupPage), client.Continue(list.Continue))
}

// lookups lets owners share readings. An owner may only share one that begins after it has come, since what it looks for
// may be younger than one under way. A reading that is not answered in time is repeated.
type lookups struct {
	options *shared.Options
	wake    func(owner types.NamespacedName)
	read    func(context.Context) (map[string][]*corev1.Node, error)

	mu sync.Mutex
	// ctx ends with the connection.
	ctx context.Context
	// known is what was asked for, by the name of the owner.
	known map[types.NamespacedName]*lookup
	// running is true while there is a goroutine that reads.
	running bool
}

// lookup is what one owner has asked for.
type lookup struct {
	id    string
	uid   types.UID
	since time.Time
	// reading means that the reading under way is for it, late that an earlier one was not answered in time.
	reading, late bool
	// done is when there was an answer.
	done  time.Time
	nodes []*corev1.Node
	err   error
}

func (l *lookups) begin(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx = ctx
}

// ask returns the answer for an owner, or a *PendingError while there is none.
func (l *lookups) ask(owner Owner, id string) ([]*corev1.Node, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil || l.ctx.Err() != nil {
		return nil, &shared.NotConnectedError{Reason: shared.NotDialledYet, Message: "the connection was closed"}
	}
	known := l.known[owner.NamespacedName]
	switch {
	case known == nil, known.id != id, known.uid != owner.UID:
		known = nil
	case known.done.IsZero():
	case len(known.nodes) > 0 && l.options.Clock.Since(known.done) < answerLife:
		// Its owner may have to ask again while it does something about the Node.
		return known.nodes, nil
	case len(known.nodes) > 0:
		// It is another question, which a reading under way does not answer.
		known = nil
	default:
		delete(l.known, owner.NamespacedName)
		return nil, known.err
	}
	if known == nil {
		known = &lookup{id: id, uid: owner.UID, since: l.options.Clock.Now()}
		if l.known == nil {
			l.known = map[types.NamespacedName]*lookup{}
		}
		l.known[owner.NamespacedName] = known
	}
	if !l.running {
		l.running = true
		go l.run(l.ctx)
	}
	return nil, &PendingError{Verb: http.MethodGet, Object: "Nodes", Since: known.since, Unanswered: known.late}
}

func (l *lookups) withdraw(owner types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, owner)
}

// run does readings until nothing waits for another.
func (l *lookups) run(ctx context.Context) {
	for l.take(ctx) {
		nodes, err := l.read(ctx)
		if ctx.Err() != nil {
			return
		}
		for _, owner := range l.answer(nodes, err) {
			l.wake(owner)
		}
	}
}

// take has the next reading be for all who wait, and reports whether any caller waits.
func (l *lookups) take(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = false
	for _, known := range l.known {
		if known.done.IsZero() {
			known.reading, l.running = true, ctx.Err() == nil
		}
	}
	return l.running
}

// answer returns what was read, and whom to wake. What was not answered in time is read again.
func (l *lookups) answer(nodes map[string][]*corev1.Node, err error) (owners []types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Clock.Now()
	late := err != nil && isTimeout(err)
	for owner, known := range l.known {
		switch {
		case !known.done.IsZero():
			if now.Sub(known.done) > answerLife {
				delete(l.known, owner)
			}
		case known.reading && late:
			known.reading, known.late = false, true
		case known.reading:
			known.nodes, known.err, known.done = nodes[known.id], err, now
			owners = append(owners, owner)
		}
	}
	return owners
}
