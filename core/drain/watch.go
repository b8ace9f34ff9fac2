package drain

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// watch updates the pods of the Node until the drain is stopped. The reflector lists, watches, and
// does both again with growing delays when it is cut off.
func (n *nodeDrain) watch() {
	reflector := cache.NewReflectorWithOptions(
		n.target.podsOf(n.node, n.readReported), &corev1.Pod{}, podStore{n},
		cache.ReflectorOptions{Name: "drain of Node " + n.node})
	reflector.RunWithContext(n.ctx)
}

// readReported takes in whether the pods could be read.
func (n *nodeDrain) readReported(err error) {
	failure := ""
	if err != nil {
		failure = "cannot read the pods of the Node: " + toOutcome(err).reason
	}
	n.mu.Lock()
	known := n.podsError == failure
	n.podsError = failure
	n.mu.Unlock()
	if !known {
		n.changed()
	}
}

// podStore is the drain as the reflector sees it: it stores trimmed pods.
type podStore struct{ drain *nodeDrain }

var _ cache.ReflectorStore = podStore{}

// Add takes in a new pod.
func (s podStore) Add(obj any) error { return s.Update(obj) }

// Update takes in a changed pod.
func (s podStore) Update(obj any) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	s.drain.mu.Lock()
	s.drain.keep(trim(pod))
	s.drain.mu.Unlock()
	s.drain.changed()
	return nil
}

// Delete drops a pod.
func (s podStore) Delete(obj any) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	s.drain.mu.Lock()
	s.drain.drop(pod.UID)
	s.drain.mu.Unlock()
	s.drain.changed()
	return nil
}

// Replace takes in the whole list.
func (s podStore) Replace(objects []any, _ string) error {
	s.drain.mu.Lock()
	left := map[types.UID]bool{}
	for _, obj := range objects {
		if pod, ok := obj.(*corev1.Pod); ok {
			left[pod.UID] = true
			s.drain.keep(trim(pod))
		}
	}
	for uid := range s.drain.pods {
		if !left[uid] {
			s.drain.drop(uid)
		}
	}
	s.drain.listed = true
	s.drain.mu.Unlock()
	s.drain.changed()
	return nil
}

// Resync has no meaning here.
func (s podStore) Resync() error { return nil }

// keep is called under mu.
func (n *nodeDrain) keep(pod *Pod) {
	if known := n.pods[pod.UID]; known != nil {
		pod.FirstSeen, pod.Returned = known.FirstSeen, known.Returned
	} else {
		pod.FirstSeen, pod.Returned = n.now(), n.listed && (n.cordon.done || n.force != nil)
	}
	n.pods[pod.UID] = pod
}

// drop is called under mu.
func (n *nodeDrain) drop(uid types.UID) {
	if a := n.attempts[uid]; a != nil && (a.inFlight || a.failures == 0) {
		n.evicted++
	}
	delete(n.pods, uid)
	delete(n.attempts, uid)
}
