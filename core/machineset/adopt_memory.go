package machineset

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// askAgain is for how long the API server's answer counts who has an instance that is to be adopted: to ask is to read all Machines and
// infrastructure machines of all namespaces, and the annotation may stand for any length of time.
const askAgain = time.Minute

// holderMemory has the latest answers, by the set that asks. The zero value is ready for use.
type holderMemory struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[adoption]holderAnswer
}

// holderAnswer is what had an instance at a time; "" for nothing.
type holderAnswer struct {
	by string
	at time.Time
}

// known returns the answer about an instance, if there is one that counts.
func (m *holderMemory) known(set types.NamespacedName, a adoption, now time.Time) (by string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, ok := m.of[set][a]
	return answer.by, ok && now.Sub(answer.at) < askAgain
}

// note keeps an answer.
func (m *holderMemory) note(set types.NamespacedName, a adoption, by string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[types.NamespacedName]map[adoption]holderAnswer{}
	}
	if m.of[set] == nil {
		m.of[set] = map[adoption]holderAnswer{}
	}
	m.of[set][a] = holderAnswer{by, now}
}

// keep drops what is known of other instances than those.
func (m *holderMemory) keep(set types.NamespacedName, listed []adoption) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for a := range m.of[set] {
		if !slices.Contains(listed, a) {
			delete(m.of[set], a)
		}
	}
	if len(m.of[set]) == 0 {
		delete(m.of, set)
	}
}
