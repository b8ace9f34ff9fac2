package machineset

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// waitList remembers which sets wait for something outside of them, so that its event enqueues them and no others. A set must be
// added before it looks whether what it waits for has come, so that no event is missed. It is in memory
// alone: after a restart each set is looked at in any case. The zero value is ready for use.
type waitList struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]string
}

// await adds a set. It waits for one thing at a time.
func (w *waitList) await(set types.NamespacedName, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sets == nil {
		w.sets = map[types.NamespacedName]string{}
	}
	w.sets[set] = what
}

// remove forgets a set.
func (w *waitList) remove(set types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sets, set)
}

// wake removes the sets that wait for this, and returns them. Those that go on waiting add themselves again.
func (w *waitList) wake(what string) []types.NamespacedName {
	return w.wakeWhere(func(awaited string) bool { return awaited == what })
}

// wakeWhere is wake for all that matches.
func (w *waitList) wakeWhere(matches func(awaited string) bool) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	var woken []types.NamespacedName
	for set, awaited := range w.sets {
		if matches(awaited) {
			woken = append(woken, set)
			delete(w.sets, set)
		}
	}
	return woken
}
