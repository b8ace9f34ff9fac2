package target

import (
	"context"
	"sync"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lookupPage is how many Nodes are read by one request.
const lookupPage = 500

// LookUpNode finds the Node with a provider ID in the API server itself, for the rare caller that must not miss one that
// the cache does not have yet; nil when there is none. An API server cannot search by provider ID, so all Nodes are read:
// once for all callers that come while an earlier reading is under way.
func (c *Connection) LookUpNode(ctx context.Context, id string) (*corev1.Node, error) {
	reading := c.lookups.join(ctx, c.readNodes)
	select {
	case <-ctx.Done():
		return nil, errors.Wrapf(context.Cause(ctx), "looking for the Node with provider ID %s", id)
	case <-reading.done:
	}
	return reading.nodes[id], reading.err
}

// readNodes reads all Nodes that have a provider ID, with the fields that the cache has.
func (c *Connection) readNodes(ctx context.Context) (map[string]*corev1.Node, error) {
	found := map[string]*corev1.Node{}
	list := &corev1.NodeList{}
	for {
		if err := c.Client.List(ctx, list, client.Limit(lookupPage), client.Continue(list.Continue)); err != nil {
			return nil, errors.Wrap(err, "listing Nodes")
		}
		for i := range list.Items {
			node, err := keepUsed(&list.Items[i])
			if err != nil {
				return nil, err
			}
			if id := list.Items[i].Spec.ProviderID; id != "" {
				found[id] = node.(*corev1.Node)
			}
		}
		if list.Continue == "" {
			return found, nil
		}
	}
}

// lookups lets callers share readings. A caller may only share one that begins after it has come, since what it looks
// for may be younger than one under way. The zero value is ready for use.
type lookups struct {
	mu sync.Mutex
	// running is the reading under way, next the one that begins when it has ended; nil when there is none.
	running, next *lookup
}

type lookup struct {
	done  chan struct{}
	nodes map[string]*corev1.Node
	err   error
}

// join returns a reading that begins from now on.
func (l *lookups) join(ctx context.Context, read func(context.Context) (map[string]*corev1.Node, error)) *lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != nil {
		return l.next
	}
	l.next = &lookup{done: make(chan struct{})}
	mine := l.next
	if l.running == nil {
		// The reading is for all that share it: it does not end with the one that was first.
		go l.run(context.WithoutCancel(ctx), read)
	}
	return mine
}

// run does readings until nobody waits for another.
func (l *lookups) run(ctx context.Context, read func(context.Context) (map[string]*corev1.Node, error)) {
	for {
		l.mu.Lock()
		l.running, l.next = l.next, nil
		current := l.running
		l.mu.Unlock()
		if current == nil {
			return
		}
		current.nodes, current.err = read(ctx)
		close(current.done)
	}
}
