package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// unconnected remembers the CloudConfigs that have found no connection to their target cluster. One is added before it looks, so that a
// connection that comes right after wakes it, whatever its status says by then. The zero value is ready for use.
type unconnected struct {
	mu      sync.Mutex
	configs map[types.NamespacedName]struct{}
}

func (u *unconnected) add(config types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.configs == nil {
		u.configs = map[types.NamespacedName]struct{}{}
	}
	u.configs[config] = struct{}{}
}

func (u *unconnected) remove(config types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.configs, config)
}

func (u *unconnected) has(config types.NamespacedName) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, waits := u.configs[config]
	return waits
}
