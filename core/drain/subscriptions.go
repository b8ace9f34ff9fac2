package drain

import "k8s.io/apimachinery/pkg/labels"

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

// attachmentChanged reports whether a VolumeAttachment matters: one of the Node, or one elsewhere of a volume that is
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

// volumeChanged reports whether a PersistentVolume matters: only a new one or one that no longer exists can, and only while the
// Node has volumes.
func (n *nodeDrain) volumeChanged(before, after *persistentVolume) bool {
	return (before == nil || after == nil || *before != *after) && len(n.reported.Volumes)+len(n.handovers) > 0
}

// namespaceChanged reports whether a namespace matters. There are few, and they change rarely.
func (n *nodeDrain) namespaceChanged(before, after *labels.Set) bool {
	return before == nil || after == nil || !labels.Equals(*before, *after)
}
