package drain

import (
	"fmt"
	"slices"
	"strings"
)

// toForcedMessage words the Result of a forced drain.
func toForcedMessage(node string, r *Result, detaching bool, problems []string) string {
	if r.Done {
		return ""
	}
	m := message{parts: slices.Clone(problems)}
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

// toDetachMessage words what is done about the volumes of a Node whose machine is gone.
func toDetachMessage(node string, problems []string) string {
	text := "Deleting the VolumeAttachments of Node " + node + ", whose instance is gone"
	if len(problems) > 0 {
		text += ": " + strings.Join(problems, "; ")
	}
	return text
}

// detachProblems says why VolumeAttachments cannot be deleted, in the words of the API server.
func (n *nodeDrain) detachProblems() []string {
	var problems []string
	for _, a := range n.target.attachments.find(ofNode(n.node)) {
		if known := n.force.attachments[a.uid]; known != nil && known.failures > 0 && !slices.ContainsFunc(problems, func(p string) bool { return strings.HasSuffix(p, known.reason) }) {
			problems = append(problems, "cannot delete VolumeAttachment "+a.name+": "+known.reason)
		}
	}
	slices.Sort(problems)
	return problems[:min(len(problems), namesInMessage)]
}
