package instance

import (
	"sync"

	"millwright.dev/providers/driver"
)

// failures remembers why machines have failed to be made, so that it is asked once.
type failures struct {
	mu     sync.Mutex
	scopes map[driver.Scope]map[string]view
}

func newFailures() *failures { return &failures{scopes: map[driver.Scope]map[string]view{}} }

func (f *failures) of(scope driver.Scope, vmID string) (view, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.scopes[scope][vmID]
	return v, ok
}

func (f *failures) note(scope driver.Scope, vmID string, v view) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.scopes[scope] == nil {
		f.scopes[scope] = map[string]view{}
	}
	f.scopes[scope][vmID] = v
}

// keep forgets the machines that are not listed any more.
func (f *failures) keep(scope driver.Scope, listed map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	there := map[string]bool{}
	for _, id := range listed {
		there[id] = true
	}
	for id := range f.scopes[scope] {
		if !there[id] {
			delete(f.scopes[scope], id)
		}
	}
	if len(f.scopes[scope]) == 0 {
		delete(f.scopes, scope)
	}
}
