package remote

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// written are the Nodes as this process has written them, for as long as the cache is behind: what was written is not
// written again only because the watch is slow. The zero value is ready for use.
type written struct {
	mu    sync.Mutex
	nodes map[string]writtenNode
}

// writtenNode is a Node as it was answered to a write, and the resource version that the write began with.
type writtenNode struct {
	node *corev1.Node
	from string
}

func (w *written) add(node *corev1.Node, from string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes == nil {
		w.nodes = map[string]writtenNode{}
	}
	w.nodes[node.Name] = writtenNode{node, from}
}

// drop forgets a Node that no longer exists.
func (w *written) drop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.nodes, name)
}

// newest returns the newer one of a cached Node and what was written.
func (w *written) newest(cached *corev1.Node) *corev1.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	own, ok := w.nodes[cached.Name]
	if !ok {
		return cached
	}
	if own.node.UID == cached.UID && newer(own, cached) {
		return own.node
	}
	delete(w.nodes, cached.Name)
	return cached
}

// newer reports whether what was written is newer than what is cached. Should a server have resource versions that cannot
// be compared, it is until the cache has changed.
func newer(own writtenNode, cached *corev1.Node) bool {
	order, err := resourceversion.CompareResourceVersion(own.node.ResourceVersion, cached.ResourceVersion)
	if err != nil {
		return cached.ResourceVersion == own.from
	}
	return order > 0
}
