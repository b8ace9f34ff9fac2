package drain

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// collection is a trimmed copy of all objects of one kind in a target cluster. One watch updates it, which all
// drains of the cluster share. It begins when the first of them needs it and ends with the target, some time after
// the last drain: the drains of a rollout come one after the other, and reading everything again for each would be expensive.
type collection[T any] struct {
	// what names the kind in messages.
	what string
	// example is an empty object of the kind.
	example runtime.Object
	// source lists and watches the kind; it reports each failure, and success with nil.
	source func(report func(error)) *cache.ListWatch
	// trim returns what is used of an object, with a key that is unique and keys to find it by.
	trim func(obj any) (item T, key string, index []string)
	// affects reports whether a change concerns a drain. It is called under the drain's mu, and may change the
	// drain. A new object has no before, a deleted one no after.
	affects func(n *nodeDrain, before, after *T) bool

	mu      sync.Mutex
	members map[*nodeDrain]bool
	copied  *trimmedCopy[T]
}

// trimmedCopy is what one run of the watch has copied.
type trimmedCopy[T any] struct {
	owner  *collection[T]
	cancel context.CancelFunc

	// The rest is guarded by the owner's mu.
	items   map[string]T
	indexes map[string][]string
	index   map[string]map[string]bool
	synced  bool
	err     string
}

// join makes a drain a member and starts the watch for the first one. It is called under the drain's mu.
func (c *collection[T]) join(n *nodeDrain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.stopped || c.members[n] {
		return
	}
	if c.members == nil {
		c.members = map[*nodeDrain]bool{}
	}
	c.members[n] = true
	if c.copied != nil {
		return
	}
	// The watch serves other drains too, so it does not end with this one.
	ctx, cancel := context.WithCancel(context.Background())
	c.copied = newTrimmedCopy(c, cancel)
	reflector := cache.NewReflectorWithOptions(c.source(c.copied.reported), c.example, c.copied,
		cache.ReflectorOptions{Name: "drains: " + c.what})
	n.drainer.spawn(func() { reflector.RunWithContext(ctx) })
}

// leave ends the membership of a drain. It may be called for non-members.
func (c *collection[T]) leave(n *nodeDrain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.members, n)
}

// stop ends the watch.
func (c *collection[T]) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copied != nil {
		c.copied.cancel()
		c.copied = nil
	}
}

// known reports whether everything has been read once since the first member joined.
func (c *collection[T]) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.copied != nil && c.copied.synced
}

// readError is why it cannot be read; empty while it can.
func (c *collection[T]) readError() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copied == nil || c.copied.err == "" {
		return ""
	}
	return "cannot read " + c.what + ": " + c.copied.err
}

// get returns the item with a key.
func (c *collection[T]) get(key string) (item T, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copied == nil {
		return item, false
	}
	item, found = c.copied.items[key]
	return item, found
}

// find returns the items with an index key, in no order.
func (c *collection[T]) find(index string) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copied == nil {
		return nil
	}
	var items []T
	for key := range c.copied.index[index] {
		items = append(items, c.copied.items[key])
	}
	return items
}

// all returns the items that a filter lets pass, in no order. It looks at every item.
func (c *collection[T]) all(pass func(T) bool) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copied == nil {
		return nil
	}
	var items []T
	for _, item := range c.copied.items {
		if pass(item) {
			items = append(items, item)
		}
	}
	return items
}

// notifyMembers lets the members continue that a change concerns.
func (c *collection[T]) notifyMembers(members []*nodeDrain, before, after *T) {
	for _, n := range members {
		n.mu.Lock()
		affected := !n.stopped && c.affects(n, before, after)
		n.mu.Unlock()
		if affected {
			n.changed()
		}
	}
}

func (c *collection[T]) membersLocked() []*nodeDrain {
	members := make([]*nodeDrain, 0, len(c.members))
	for n := range c.members {
		members = append(members, n)
	}
	return members
}

func newTrimmedCopy[T any](owner *collection[T], cancel context.CancelFunc) *trimmedCopy[T] {
	return &trimmedCopy[T]{
		owner: owner, cancel: cancel,
		items: map[string]T{}, indexes: map[string][]string{}, index: map[string]map[string]bool{},
	}
}

// reported takes in whether the kind could be read.
func (t *trimmedCopy[T]) reported(err error) {
	failure := ""
	if err != nil {
		failure = toOutcome(err).reason
	}
	t.owner.mu.Lock()
	changed := t.err != failure
	t.err = failure
	members := t.owner.membersLocked()
	t.owner.mu.Unlock()
	if changed {
		for _, n := range members {
			n.changed()
		}
	}
}

// Add takes in a new object.
func (t *trimmedCopy[T]) Add(obj any) error { return t.Update(obj) }

// Update takes in a changed object.
func (t *trimmedCopy[T]) Update(obj any) error {
	item, key, index := t.owner.trim(obj)
	t.owner.mu.Lock()
	before := t.putLocked(item, key, index)
	members := t.owner.membersLocked()
	t.owner.mu.Unlock()
	t.owner.notifyMembers(members, before, &item)
	return nil
}

// Delete drops an object.
func (t *trimmedCopy[T]) Delete(obj any) error {
	_, key, _ := t.owner.trim(obj)
	t.owner.mu.Lock()
	before, found := t.items[key]
	t.dropLocked(key)
	members := t.owner.membersLocked()
	t.owner.mu.Unlock()
	if found {
		t.owner.notifyMembers(members, &before, nil)
	}
	return nil
}

// Replace takes in the whole list, and has all members look.
func (t *trimmedCopy[T]) Replace(objects []any, _ string) error {
	t.owner.mu.Lock()
	left := map[string]bool{}
	for _, obj := range objects {
		item, key, index := t.owner.trim(obj)
		t.putLocked(item, key, index)
		left[key] = true
	}
	for key := range t.items {
		if !left[key] {
			t.dropLocked(key)
		}
	}
	t.synced = true
	items := make([]T, 0, len(t.items))
	for _, item := range t.items {
		items = append(items, item)
	}
	members := t.owner.membersLocked()
	t.owner.mu.Unlock()
	for _, n := range members {
		n.mu.Lock()
		for i := range items {
			t.owner.affects(n, nil, &items[i])
		}
		n.mu.Unlock()
		n.changed()
	}
	return nil
}

// Resync has no meaning here.
func (t *trimmedCopy[T]) Resync() error { return nil }

func (t *trimmedCopy[T]) putLocked(item T, key string, index []string) (before *T) {
	if known, found := t.items[key]; found {
		before = &known
		t.dropLocked(key)
	}
	t.items[key], t.indexes[key] = item, index
	for _, i := range index {
		if t.index[i] == nil {
			t.index[i] = map[string]bool{}
		}
		t.index[i][key] = true
	}
	return before
}

func (t *trimmedCopy[T]) dropLocked(key string) {
	for _, i := range t.indexes[key] {
		delete(t.index[i], key)
		if len(t.index[i]) == 0 {
			delete(t.index, i)
		}
	}
	delete(t.items, key)
	delete(t.indexes, key)
}
