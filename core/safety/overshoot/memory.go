package overshoot

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory is what a reconciler remembers of its objects. All of it may be lost: a surplus that is to be taken away gets another period then,
// and the cache alone says what has come meanwhile. The zero value is ready for use.
type memory struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*remembered
	// taken has the last census of each namespace.
	taken map[string]*census
	// looking has a lock for each namespace: many deployments ask for the same census.
	looking map[string]*sync.Mutex
}

// remembered is what is known of one object.
type remembered struct {
	uid types.UID
	// allowed is how many Machines the planner could make when it was looked at last.
	allowed int
	// surplus is since when there is a surplus that a scale-down is to take away.
	surplus time.Time
	// froze is when this process has frozen it; zero once this process has ended that.
	froze time.Time
	// arrived is when the first Machine came that no census has counted.
	arrived time.Time
}

// of is what is known of an object. It is called under mu.
func (m *memory) of(key types.NamespacedName, uid types.UID) *remembered {
	if m.objects == nil {
		m.objects = map[types.NamespacedName]*remembered{}
	}
	known, ok := m.objects[key]
	if !ok || (uid != "" && known.uid != "" && known.uid != uid) {
		// Another object of that name has none of this history.
		known = &remembered{}
		m.objects[key] = known
	}
	if uid != "" {
		known.uid = uid
	}
	return known
}

// forget drops an object that no longer exists, and returns its UID.
func (m *memory) forget(key types.NamespacedName) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.objects[key]
	if !ok {
		return ""
	}
	delete(m.objects, key)
	return known.uid
}

// came notes that a Machine has come.
func (m *memory) came(key types.NamespacedName, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.of(key, ""); known.arrived.IsZero() {
		known.arrived = now
	}
}

// arrival is when the first Machine came that no census has counted; zero when none has.
func (m *memory) arrival(object client.Object) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(client.ObjectKeyFromObject(object), object.GetUID()).arrived
}

// counted notes that what came up to then has been counted.
func (m *memory) counted(object client.Object, arrived time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.of(client.ObjectKeyFromObject(object), object.GetUID()); known.arrived.Equal(arrived) {
		known.arrived = time.Time{}
	}
}

// surplus notes whether there are so many Machines that no more may be created, and returns since when a scale-down is to take them away;
// zero when none is.
func (m *memory) surplus(object client.Object, numbers Numbers, over bool, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(client.ObjectKeyFromObject(object), object.GetUID())
	lowered := numbers.Allowed() < known.allowed
	known.allowed = numbers.Allowed()
	switch {
	case !over:
		known.surplus = time.Time{}
	case lowered, numbers.ScalingDown && known.surplus.IsZero():
		known.surplus = now
	}
	return known.surplus
}

// setFroze notes when this process has frozen an object; zero when it has ended that.
func (m *memory) setFroze(object client.Object, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(client.ObjectKeyFromObject(object), object.GetUID()).froze = at
}

func (m *memory) froze(object client.Object) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(client.ObjectKeyFromObject(object), object.GetUID()).froze
}

// lock waits until nothing else looks at a namespace, and returns what ends that.
func (m *memory) lock(namespace string) func() {
	m.mu.Lock()
	if m.looking == nil {
		m.looking = map[string]*sync.Mutex{}
	}
	if m.looking[namespace] == nil {
		m.looking[namespace] = &sync.Mutex{}
	}
	of := m.looking[namespace]
	m.mu.Unlock()
	of.Lock()
	return of.Unlock
}

// keep keeps the last census of a namespace.
func (m *memory) keep(namespace string, c *census) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken == nil {
		m.taken = map[string]*census{}
	}
	m.taken[namespace] = c
}

// last is the last census of a namespace, if it was taken after a time; else nil.
func (m *memory) last(namespace string, after time.Time) *census {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.taken[namespace]; c != nil && c.taken.After(after) {
		return c
	}
	return nil
}
