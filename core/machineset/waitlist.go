package machineset

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// waitList remembers which sets wait for something outside of them, so that its event wakes them and nobody else. A set
// must be put down before it looks whether what it waits for has come, so that no event is missed. It is in memory
// alone: after a restart each set is looked at in any case. The zero value is ready for use.
type waitList struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]string
}

// await puts a set down. It waits for one thing at a time.
func (w *waitList) await(set types.NamespacedName, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sets == nil {
		w.sets = map[types.NamespacedName]string{}
	}
	w.sets[set] = what
}

// content strikes a set off.
func (w *waitList) content(set types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sets, set)
}

// wake strikes off the sets that wait for this, and returns them. Those that go on waiting put themselves down again.
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
