package inframachine

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// noted is what this process knows of objects beside what is persisted; losing it costs a call to the cloud, and nothing else.
type noted[T any] struct {
	mu     sync.Mutex
	values map[types.NamespacedName]T
}

func (n *noted[T]) get(key types.NamespacedName) T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.values[key]
}

func (n *noted[T]) set(key types.NamespacedName, value T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.values == nil {
		n.values = map[types.NamespacedName]T{}
	}
	n.values[key] = value
}

func (n *noted[T]) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.values, key)
}
