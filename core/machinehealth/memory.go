package machinehealth

import (
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/health"
)

// memory is what this process has seen of the Machines of each Cluster. It may be lost at any time: then times count from what the
// objects say. The zero value is ready for use.
type memory struct {
	mu     sync.Mutex
	of     map[client.ObjectKey]*histories
	active map[client.ObjectKey]bool
}

// histories are those of one Cluster. One round at a time has them.
type histories struct {
	cluster *health.History
	// before are those of the round before; nil in the first. now are those of this one: Machines that no longer exist fall out.
	before, now map[types.UID]*health.History
	// checked is when it was known last that the request of external remediation for a Machine was there; checkedBefore is that of the
	// round before.
	checkedBefore, checked map[types.UID]time.Time
}

// begin returns the histories for a round.
func (m *memory) begin(cluster client.ObjectKey) *histories {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.of[cluster]
	if h == nil {
		h = &histories{cluster: health.NewHistory(false)}
	}
	return &histories{
		cluster: h.cluster, before: h.now, now: map[types.UID]*health.History{},
		checkedBefore: h.checked, checked: map[types.UID]time.Time{},
	}
}

// of is the history of a Machine. What was not there in the round before has come before the eyes of this process.
func (h *histories) of(machine types.UID) *health.History {
	known := h.before[machine]
	if known == nil {
		known = health.NewHistory(h.before != nil)
	}
	h.now[machine] = known
	if at, ok := h.checkedBefore[machine]; ok {
		h.checked[machine] = at
	}
	return known
}

// end keeps them for the next round.
func (m *memory) end(cluster client.ObjectKey, h *histories) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[client.ObjectKey]*histories{}
	}
	m.of[cluster] = h
}

// setActive notes whether there is anything to judge by in a Cluster: events of the others enqueue nothing, and nothing is kept of them.
func (m *memory) setActive(cluster client.ObjectKey, active bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.active == nil {
		m.active = map[client.ObjectKey]bool{}
	}
	if active {
		m.active[cluster] = true
		return
	}
	delete(m.active, cluster)
	delete(m.of, cluster)
}

func (m *memory) isActive(cluster client.ObjectKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.active[cluster]
}

// marks remembers of each Node what of it is judged, so that a volume that is attached or a label enqueues nothing. The zero value is
// ready for use.
type marks struct {
	mu sync.Mutex
	of map[client.ObjectKey]map[string]uint64
}

// changed notes a Node, and reports whether that changes a judgement; gone means that it is not there any more.
func (m *marks) changed(cluster client.ObjectKey, node *corev1.Node, gone bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	nodes := m.of[cluster]
	if gone {
		delete(nodes, node.Name)
		return true
	}
	if nodes == nil {
		if m.of == nil {
			m.of = map[client.ObjectKey]map[string]uint64{}
		}
		nodes = map[string]uint64{}
		m.of[cluster] = nodes
	}
	mark := markOf(node)
	before, known := nodes[node.Name]
	nodes[node.Name] = mark
	return !known || before != mark
}

// forget drops the Nodes of a Cluster that no longer exists.
func (m *marks) forget(cluster client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, cluster)
}

func markOf(node *corev1.Node) uint64 {
	sum := fnv.New64a()
	add := func(texts ...string) {
		for _, text := range texts {
			_, _ = sum.Write([]byte(text))
			_, _ = sum.Write([]byte{0})
		}
	}
	add(string(node.UID), node.Spec.ProviderID)
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		add(string(c.Type), string(c.Status), c.Reason, strconv.FormatInt(c.LastTransitionTime.Unix(), 10))
	}
	return sum.Sum64()
}
