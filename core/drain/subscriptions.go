package drain

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// joinNeeded has read what the drain needs besides the pods. It is called under mu.
func (n *nodeDrain) joinNeeded() {
	if n.force != nil || !Unreachable(n.request.Node) {
		n.target.attachments.join(n)
	}
	if n.request.Mode != Detach && len(n.request.Node.Status.VolumesAttached)+len(n.target.attachments.find(ofNode(n.node))) > 0 {
		n.target.volumes.join(n)
	}
	if n.request.Rules != nil && n.request.Rules.namespaces {
		n.target.namespaces.join(n)
	}
}

// attachmentChanged says whether a VolumeAttachment matters: one of the Node, or one elsewhere of a volume that is
// on its way.
func (n *nodeDrain) attachmentChanged(before, after *attachment) bool {
	for _, a := range []*attachment{before, after} {
		if a == nil {
			continue
		}
		if _, underWay := n.handovers[a.volume]; underWay || a.node == n.node {
			return true
		}
	}
	return false
}

// volumeChanged says whether a PersistentVolume matters: only a new one or one that has gone can, and only while the
// Node has volumes.
func (n *nodeDrain) volumeChanged(before, after *persistentVolume) bool {
	return (before == nil || after == nil || *before != *after) && len(n.reported.Volumes)+len(n.handovers) > 0
}

// namespaceChanged says whether a namespace matters. There are few, and they change rarely.
func (n *nodeDrain) namespaceChanged(before, after *labels.Set) bool {
	return before == nil || after == nil || !labels.Equals(*before, *after)
}

// budgetChanged lets pods that a budget has held up be tried again at once when it allows evictions, as many as it
// allows. That a budget is or is no longer hopeless is worth a report.
func (n *nodeDrain) budgetChanged(before, after *budget) bool {
	changed := after == nil
	if after == nil {
		after = &budget{key: before.key, selector: before.selector, allowed: int32(len(n.pods))}
	}
	if before != nil && before.hopeless != after.hopeless {
		changed = true
	}
	allowed := after.allowed
	for uid, a := range n.attempts {
		if allowed <= 0 || a.inFlight || a.failures == 0 {
			continue
		}
		if pod := n.pods[uid]; pod != nil && after.covers(pod, a.budget) {
			a.retryAt = time.Time{}
			allowed--
			changed = true
		}
	}
	return changed || before == nil && after.hopeless
}

// covers says whether a budget is about a pod; named is the budget that the API server has named.
func (b *budget) covers(pod *Pod, named string) bool {
	if pod.Key.Namespace != b.key.Namespace {
		return false
	}
	return named == b.key.Name || named == "" && b.selector.Matches(labels.Set(pod.Labels))
}
