package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
)

const (
	// freeRepeats is how often the same change of a Node is written without a pause. More would be a fight with a user or controller
	// who undoes it.
	freeRepeats = 3
	// freeWrites is how often a Node is written at all, whatever the changes are, before there are pauses.
	freeWrites = 20
	// The pause before the next write doubles from contestMinPause to contestMaxPause.
	contestMinPause = time.Second
	contestMaxPause = 5 * time.Minute
	// contestMemory is how long a change must have stood to count as one that nothing undoes.
	contestMemory = 2 * contestMaxPause
	// writesMemory is the same for the writes of a Node as a whole.
	writesMemory = time.Minute
	// maxNamed is how many changes a message names.
	maxNamed = 3
)

// contests counts what is written to each Node again and again, and holds it back for longer each time: two writers that
// want different things of a Node do not fight at the speed of their API server. The zero value is ready for use.
type contests struct {
	mu sync.Mutex
	// nodes are the changes written to each Node, by what they change and set, and allWrites.
	nodes map[nodeKey]map[string]*repeats
	swept time.Time
}

// nodeKey is a Node. Its UID alone does not do: an API server in memory may set none.
type nodeKey struct {
	name string
	uid  types.UID
}

func keyOf(node *corev1.Node) nodeKey { return nodeKey{node.Name, node.UID} }

// allWrites is the key of the writes of a Node as a whole.
const allWrites = ""

// repeats is how often something was written.
type repeats struct {
	count       int
	last, until time.Time
	// other names who has undone it.
	other string
}

func (c change) key() string { return strings.Join(c.path, "/") + "=" + c.value }

// check returns a *ContestedError while changes are held back.
func (c *contests) check(node *corev1.Node, changes []change, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.nodes[keyOf(node)]
	held := &ContestedError{Node: node.Name}
	hold := func(r *repeats) bool {
		if r == nil || !now.Before(r.until) {
			return false
		}
		if held.RetryAt.Before(r.until) {
			held.RetryAt = r.until
		}
		return true
	}
	for _, change := range changes {
		if r := known[change.key()]; hold(r) {
			held.Changes = append(held.Changes, change.String())
			held.Other = r.other
		}
	}
	hold(known[allWrites])
	if held.RetryAt.IsZero() {
		return nil
	}
	slices.Sort(held.Changes)
	return held
}

// repeated reports whether one of the changes was written before.
func (c *contests) repeated(node *corev1.Node, changes []change) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.nodes[keyOf(node)]
	return slices.ContainsFunc(changes, func(change change) bool { return known[change.key()] != nil })
}

// wrote takes in that changes were written.
func (c *contests) wrote(before *corev1.Node, changes []change, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now)
	known := c.nodes[keyOf(before)]
	if known == nil {
		known = map[string]*repeats{}
		if c.nodes == nil {
			c.nodes = map[nodeKey]map[string]*repeats{}
		}
		c.nodes[keyOf(before)] = known
	}
	for _, change := range changes {
		again(known, change.key(), freeRepeats, contestMemory, now)
	}
	again(known, allWrites, freeWrites, writesMemory, now)
}

// again counts a write, and sets the pause before the next.
func again(known map[string]*repeats, key string, free int, memory time.Duration, now time.Time) {
	r := known[key]
	if r == nil || now.Sub(r.last) > memory && now.Sub(r.until) > memory {
		r = &repeats{}
		known[key] = r
	}
	r.count++
	r.last = now
	if more := r.count - free; more >= 0 {
		pause := contestMaxPause
		if more < 10 {
			pause = min(contestMinPause<<more, contestMaxPause)
		}
		r.until = now.Add(pause)
	}
}

// sweep forgets, from time to time, what has stood for long. It is called under mu.
func (c *contests) sweep(now time.Time) {
	if now.Sub(c.swept) < contestMemory {
		return
	}
	c.swept = now
	for node, known := range c.nodes {
		for key, r := range known {
			if now.Sub(r.last) > contestMemory && now.Sub(r.until) > contestMemory {
				delete(known, key)
			}
		}
		if len(known) == 0 {
			delete(c.nodes, node)
		}
	}
}

// undoneBy takes in who had undone changes.
func (c *contests) undoneBy(node *corev1.Node, changes []change, other func(change) string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range changes {
		if r := c.nodes[keyOf(node)][change.key()]; r != nil {
			r.other = other(change)
		}
	}
}

// lookForOther reads who has written the fields of changes last. That it cannot be found out holds up nothing.
func (c *Connection) lookForOther(ctx context.Context, node *corev1.Node, changes []change) {
	live := &corev1.Node{}
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(node), live); err != nil {
		return
	}
	c.contests.undoneBy(node, changes, func(change change) string { return lastManager(live.ManagedFields, change.path) })
}

// lastManager names the field manager that has written a field last; "" when nothing owns it, as when it was removed.
func lastManager(entries []metav1.ManagedFieldsEntry, path []string) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.FieldsV1 == nil || !owns(entry.FieldsV1.GetRawBytes(), path) {
			continue
		}
		if last.Manager == "" || last.Time.Before(entry.Time) {
			last = entry
		}
	}
	return last.Manager
}

// owns reports whether a set of managed fields has a field in it.
func owns(fields []byte, path []string) bool {
	for _, step := range path {
		var children map[string]json.RawMessage
		if json.Unmarshal(fields, &children) != nil {
			return false
		}
		child, ok := children["f:"+step]
		if !ok {
			return false
		}
		fields = child
	}
	return true
}

// ContestedError means that changes of a Node are held back, since they are undone each time they are written.
type ContestedError struct {
	// Node is the name of the Node.
	Node string
	// Changes name what is undone, sorted; empty when the Node is written too often as a whole.
	Changes []string
	// Other is the field manager that writes against it, "" when it is not known.
	Other string
	// RetryAt is when it is written again.
	RetryAt time.Time
}

// Error describes what is undone, by whom, and what to do. It stays the same for as long as that does.
func (e *ContestedError) Error() string {
	if len(e.Changes) == 0 {
		return fmt.Sprintf(
			"Node %s is written too often, so writes are held back: look for who else changes its labels, annotations or taints",
			e.Node,
		)
	}
	names := conditions.ListNames(e.Changes, maxNamed)
	if e.Other != "" {
		return fmt.Sprintf("the field manager %q reverts changes of Node %s (%s): only one client may own them, stop the other", e.Other, e.Node, names)
	}
	return fmt.Sprintf("another client reverts changes of Node %s (%s): only one client may own them, stop the other", e.Node, names)
}
