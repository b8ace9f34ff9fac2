package rewritten

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Retry is the interval at which the labels of a rewritten object are tried again: a changed policy sends no event.
const Retry = time.Minute

// Entry is an object whose labels or owner an admission policy rewrites.
type Entry struct {
	Key  client.ObjectKey
	UID  types.UID
	Line string
	// version is the resource version at which the object was tried, at is the time.
	version string
	at      time.Time
}

// Memory remembers what is rewritten, by the UID of the owner. The zero value is ready for use.
type Memory struct {
	mu      sync.Mutex
	entries map[types.UID]map[types.UID]Entry
}

// Note remembers that an object is rewritten. It returns the description, and whether that is new.
func (m *Memory) Note(owner types.UID, kind string, object client.Object, wanted *Wanted, now time.Time) (text string, fresh bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text = Line(kind, object, wanted.Differences(object))
	before := m.entries[owner][object.GetUID()]
	if m.entries == nil {
		m.entries = map[types.UID]map[types.UID]Entry{}
	}
	if m.entries[owner] == nil {
		m.entries[owner] = map[types.UID]Entry{}
	}
	m.entries[owner][object.GetUID()] = Entry{
		Key: client.ObjectKeyFromObject(object), UID: object.GetUID(), Line: text, version: object.GetResourceVersion(), at: now,
	}
	return text, before.Line != text
}

// Known returns what is known of an object. tried means that nothing has changed since it was tried.
func (m *Memory) Known(owner types.UID, object metav1.Object, now time.Time) (entry Entry, known, tried bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry, known = m.entries[owner][object.GetUID()]
	return entry, known, known && entry.version == object.GetResourceVersion() && now.Sub(entry.at) < Retry
}

// Drop forgets an object.
func (m *Memory) Drop(owner, object types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries[owner], object)
	if len(m.entries[owner]) == 0 {
		delete(m.entries, owner)
	}
}

// Forget drops all objects of an owner.
func (m *Memory) Forget(owner types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, owner)
}

// Of returns what is rewritten of an owner, in the order of names.
func (m *Memory) Of(owner types.UID) []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.entries[owner]), func(a, b Entry) int { return cmp.Compare(a.Key.Name, b.Key.Name) })
}

// Review drops the entries of objects that are gone, or that their owner finds again, and returns the others. read reads an object from
// the cache, which may not show a new one yet.
func (m *Memory) Review(owner types.UID, wanted *Wanted, now time.Time, read func(client.ObjectKey) (metav1.Object,
	error)) ([]Entry, error) {
	var left []Entry
	for _, entry := range m.Of(owner) {
		object, err := read(entry.Key)
		switch {
		case apierrors.IsNotFound(err) && now.Sub(entry.at) >= Retry,
			err == nil && object.GetUID() != entry.UID,
			err == nil && !object.GetDeletionTimestamp().IsZero(),
			err == nil && wanted.Found(object):
			m.Drop(owner, entry.UID)
		case err != nil && !apierrors.IsNotFound(err):
			return nil, err
		default:
			left = append(left, entry)
		}
	}
	return left, nil
}

// Try asks the API server, without writing anything, whether it would store an object with the labels that its owner wants. So a user who
// has removed a label is distinguished from a policy that rewrites it. It returns the object as it would be stored; nil when that cannot be
// told, since a webhook does not support dry runs.
func Try(ctx context.Context, c client.Client, object client.Object, wanted *Wanted) (client.Object, error) {
	tried, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return nil, nil
	}
	wanted.Restore(tried)
	err := c.Patch(ctx, tried, client.MergeFrom(object), client.DryRunAll)
	if apierrors.IsBadRequest(err) {
		return nil, nil
	}
	return tried, err
}
