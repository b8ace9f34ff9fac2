package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "millwright.dev/contracts/remote"
)

// NodePatch is a change of a Node.
type NodePatch struct {
	// Before is the Node as read, After as it shall be.
	Before, After *corev1.Node
	// Lock has the write fail when the Node has changed since it was read.
	Lock bool
	// Verify, if set, judges the Node as the API server answers it. It runs in another goroutine; its error is the answer.
	Verify func(answered *corev1.Node) error
}

// PatchNode writes the differences between two versions of a Node. It never waits: it returns a *PendingError until the API
// server has answered, and the owner is woken then (Connections.OnAnswer). Once it has succeeded the cache has what was
// written, so a caller that compares the Node with what it wants finds nothing left to write. An error is returned to the next call
// for the same Node: a *ReplacedError when another Node has its name now, or the conflict that a lock makes of it. A write that
// others keep undoing is held back with a *ContestedError.
func (c *Connection) PatchNode(owner Owner, patch NodePatch) (*corev1.Node, error) {
	// A difference in the UID has it in the patch, so that the API server refuses it for any other Node.
	before := patch.Before.DeepCopy()
	before.UID = ""
	merge := client.MergeFrom(before)
	if patch.Lock {
		merge = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	data, err := merge.Data(patch.After)
	if err != nil {
		return nil, errors.Wrapf(err, "comparing two versions of Node %s", patch.Before.Name)
	}
	changes, err := changesOf(data)
	if err != nil {
		return nil, errors.Wrapf(err, "reading the patch of Node %s", patch.Before.Name)
	}
	return c.patches.ask(owner, request{
		id: patch.Before.Name + "/" + string(patch.Before.UID), object: "Node " + patch.Before.Name, forget: true,
		allowed: func(now time.Time) error { return c.contests.check(patch.Before, changes, now) },
		send: func(ctx context.Context) (*corev1.Node, error) {
			return c.sendPatch(ctx, patch, changes, data)
		},
	})
}

// sendPatch sends a patch, and takes over what the API server answers.
func (c *Connection) sendPatch(ctx context.Context, patch NodePatch, changes []change, data []byte) (*corev1.Node, error) {
	before := patch.Before
	if c.contests.repeated(before, changes) {
		// Who writes against us is seen only before our own write.
		c.lookForOther(ctx, before, changes)
	}
	node := &corev1.Node{}
	node.Name = before.Name
	if err := c.client.Patch(ctx, node, client.RawPatch(types.MergePatchType, data)); err != nil {
		if isOfAnotherUID(err) {
			return nil, &ReplacedError{Node: before.Name, UID: before.UID}
		}
		return nil, err
	}
	kept, err := trimNode(node)
	if err != nil {
		return nil, err
	}
	answered := kept.(*corev1.Node)
	c.written.add(answered, before.ResourceVersion)
	if patch.Verify != nil {
		if err := patch.Verify(answered); err != nil {
			return nil, err
		}
	}
	c.contests.wrote(before, changes, c.now())
	return answered, nil
}

// DeleteNode deletes exactly this Node. Like PatchNode it never waits.
func (c *Connection) DeleteNode(owner Owner, node *corev1.Node) error {
	uid := node.UID
	_, err := c.deletes.ask(owner, request{
		id: node.Name + "/" + string(uid), object: "Node " + node.Name,
		send: func(ctx context.Context) (*corev1.Node, error) {
			doomed := &corev1.Node{}
			doomed.Name = node.Name
			return nil, c.client.Delete(ctx, doomed, client.Preconditions{UID: ptr.To(uid)})
		},
	})
	return err
}

// Trouble describes which requests the API server does not answer, or refuses, although it answers probes; "" while it answers all.
func (c *Connection) Trouble() string {
	if _, trouble := c.unansweredRequests(); trouble != "" {
		return trouble
	}
	if c.nodes.reading == nil {
		// A connection for tests has no cache.
		return ""
	}
	return c.nodes.reading.refusal(c.to.Server())
}

// TroubleSince returns since when the API server has not answered requests, or the cache of Nodes is behind, and why; the zero
// time for neither.
func (c *Connection) TroubleSince() (time.Time, string) {
	since, trouble := c.unansweredRequests()
	if c.nodes.reading == nil {
		return since, trouble
	}
	if unread, why := c.nodes.reading.unread(c.to.Server()); since.IsZero() || !unread.IsZero() && unread.Before(since) {
		return unread, why
	}
	return since, trouble
}

// unansweredRequests returns since when which requests have not been answered; the zero time while all are.
func (c *Connection) unansweredRequests() (time.Time, string) {
	for _, l := range []*lane{&c.patches, &c.deletes} {
		if since := l.unansweredSince(); !since.IsZero() {
			return since, fmt.Sprintf("API requests time out: %s of Nodes has not been answered at %s since %s",
				l.verb, c.to.Server(), since.UTC().Format(time.RFC3339))
		}
	}
	return time.Time{}, ""
}

// withdraw forgets what an owner has asked for.
func (c *Connection) withdraw(owner types.NamespacedName) {
	c.patches.withdraw(owner)
	c.deletes.withdraw(owner)
	c.lookups.withdraw(owner)
}

// DirectConnection is a connection for tests, which sends each request in the goroutine of its caller and returns the answer.
func DirectConnection(c client.Client) *Connection {
	direct := &Connection{client: c, options: &shared.Options{Clock: clock.RealClock{}}}
	direct.patches.direct, direct.deletes.direct = true, true
	return direct
}

// change is one thing that a patch sets or removes.
type change struct {
	// path is where, for example ["metadata", "labels", "a/b"].
	path []string
	// value is what is set, as JSON; "null" for what is removed.
	value string
}

func (c change) String() string {
	if len(c.path) == 3 {
		return map[string]string{"labels": "label ", "annotations": "annotation "}[c.path[1]] + c.path[2]
	}
	return c.path[len(c.path)-1]
}

// changesOf takes a merge patch of a Node apart: into labels, annotations, and other fields as a whole. UID and resource
// version are conditions and no changes.
func changesOf(data []byte) ([]change, error) {
	var parts map[string]map[string]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, err
	}
	var changes []change
	for part, fields := range parts {
		for field, value := range fields {
			switch {
			case part == "metadata" && (field == "resourceVersion" || field == "uid"):
			case part == "metadata" && (field == "labels" || field == "annotations") && string(value) != "null":
				var entries map[string]json.RawMessage
				if err := json.Unmarshal(value, &entries); err != nil {
					return nil, err
				}
				for key, value := range entries {
					changes = append(changes, change{[]string{part, field, key}, string(value)})
				}
			default:
				changes = append(changes, change{[]string{part, field}, string(value)})
			}
		}
	}
	return changes, nil
}
