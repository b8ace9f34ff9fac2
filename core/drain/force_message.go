package drain

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// toForcedMessage describes the Result of a forced drain.
func toForcedMessage(node string, r *Result, detaching bool, blockers []string) string {
	if r.Done {
		return ""
	}
	m := message{parts: slices.Clone(blockers)}
	m.pods("deleting", r.Evicting)
	for _, group := range byReason(r.Blocked) {
		m.add(fmt.Sprintf("cannot delete %s: %s", names(group.pods), group.reason))
	}
	m.pods("given up:", r.Abandoned)
	if detaching && r.left() == 0 {
		m.add("deleting the VolumeAttachments of the Node")
	}
	if len(m.parts) == 0 {
		m.add("reading its pods")
	}
	return fmt.Sprintf("Draining Node %s by force%s: %s", node, podsLeft(r.left()), m)
}

// toDetachMessage describes what is done about the volumes of a Node whose machine is gone.
func toDetachMessage(node string, blockers []string) string {
	text := "Deleting the VolumeAttachments of Node " + node + ", whose instance is gone"
	if len(blockers) > 0 {
		text += ": " + strings.Join(blockers, "; ")
	}
	return text
}

// detachErrors are why the VolumeAttachments of the Node cannot be deleted.
func (n *nodeDrain) detachErrors() []string {
	return detachErrors(n.target.attachments.find(ofNode(n.node)), n.force.attachments)
}

// detachErrors has the messages of the API server, each for the first of the VolumeAttachments, which come in any order.
func detachErrors(attachments []attachment, attempts map[types.UID]*attempt) []string {
	slices.SortFunc(attachments, func(a, b attachment) int { return strings.Compare(a.Name, b.Name) })
	var blockers []string
	for _, a := range attachments {
		if known := attempts[a.UID]; known != nil && known.failures > 0 &&
			!slices.ContainsFunc(blockers, func(p string) bool { return strings.HasSuffix(p, known.reason) }) {
			blockers = append(blockers, "cannot delete VolumeAttachment "+a.Name+": "+known.reason)
		}
	}
	return blockers[:min(len(blockers), namesInMessage)]
}
