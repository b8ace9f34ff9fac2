package drain

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/contracts/controller/conditions"
)

// namesInMessage is how many pods of each list a message names; conditions are read by people.
const namesInMessage = 3

// toMessage describes a Result. The times in it are left out, so that it is equal while nothing changes.
func toMessage(node string, r *Result, blockers []string) string {
	m := message{parts: slices.Clone(blockers)}
	m.pods("evicting", r.Pods[Evicting])
	m.pods("waiting for termination of", r.Pods[Terminating])
	m.blocked("cannot evict %s: %s", r.Pods[Blocked])
	m.pods("waiting for completion of", r.Pods[Completing])
	m.volumes("waiting until %s detached", r.Detaching)
	m.volumes("waiting until %s attached to another Node", r.Reattaching)
	m.pods("one by one, because of their volumes:", r.Pods[Queued])
	m.pods("after them:", r.Pods[Later])
	m.pods("left alone for a moment, since they have returned to the cordoned Node:", r.Pods[Returning])
	return fmt.Sprintf("Draining Node %s%s: %s", node, podsLeft(r.left()), m)
}

// toForcedMessage describes the Result of a forced drain.
func toForcedMessage(node string, r *Result, detaching bool, blockers []string) string {
	m := message{parts: slices.Clone(blockers)}
	m.pods("deleting", r.Pods[Evicting])
	m.blocked("cannot delete %s: %s", r.Pods[Blocked])
	m.pods("given up:", r.Pods[Abandoned])
	if detaching && r.left() == 0 {
		m.add("deleting the VolumeAttachments of the Node")
	}
	return fmt.Sprintf("Draining Node %s by force%s: %s", node, podsLeft(r.left()), m)
}

func podsLeft(pods int) string {
	switch pods {
	case 0:
		return ""
	case 1:
		return ", 1 pod left"
	default:
		return fmt.Sprintf(", %d pods left", pods)
	}
}

// message is a message in the making.
type message struct{ parts []string }

func (m message) String() string {
	if len(m.parts) == 0 {
		return "reading its pods"
	}
	return strings.Join(m.parts, "; ")
}

func (m *message) add(part string) { m.parts = append(m.parts, part) }

func (m *message) pods(what string, pods []PodStatus) {
	if len(pods) > 0 {
		m.add(what + " " + names(pods))
	}
}

func (m *message) blocked(format string, pods []PodStatus) {
	for _, group := range byReason(pods) {
		m.add(fmt.Sprintf(format, names(group.pods), group.reason))
	}
}

func (m *message) volumes(format string, volumes []string) {
	switch {
	case len(volumes) == 1:
		m.add(fmt.Sprintf(format, "PersistentVolume "+volumes[0]+" is"))
	case len(volumes) > 1:
		m.add(fmt.Sprintf(format, "PersistentVolumes "+listed(volumes)+" are"))
	}
}

// blockedGroup is pods that are blocked for the same reason.
type blockedGroup struct {
	reason string
	pods   []PodStatus
}

// byReason groups blocked pods: by their PodDisruptionBudget where one is known, else by the message. The counts
// in the server's message differ from pod to pod, so that of the first pod stands for its budget.
func byReason(blocked []PodStatus) []*blockedGroup {
	var groups []*blockedGroup
	index := map[string]*blockedGroup{}
	for i := range blocked {
		pod := &blocked[i]
		key, reason := pod.Reason, pod.Reason
		if pod.PodDisruptionBudget != "" {
			key = "pdb/" + pod.Pod.Namespace + "/" + pod.PodDisruptionBudget
			reason = fmt.Sprintf("PodDisruptionBudget %s/%s forbids it (%s)",
				pod.Pod.Namespace, pod.PodDisruptionBudget, pod.Reason)
			if pod.Unsatisfiable {
				reason = fmt.Sprintf("PodDisruptionBudget %s/%s can never be satisfied: %s; change it, or add replicas",
					pod.Pod.Namespace, pod.PodDisruptionBudget, pod.Reason)
			}
		}
		group, ok := index[key]
		if !ok {
			group = &blockedGroup{reason: reason}
			index[key] = group
			groups = append(groups, group)
		}
		group.pods = append(group.pods, *pod)
	}
	return groups
}

// names lists the first pods and counts the others.
func names(pods []PodStatus) string {
	shown := make([]string, 0, len(pods))
	for i := range pods {
		shown = append(shown, pods[i].Pod.String())
	}
	if len(pods) > 1 {
		return "pods " + listed(shown)
	}
	return "pod " + listed(shown)
}

// listed lists the first names and counts the others.
func listed(names []string) string { return conditions.ListNames(names, namesInMessage) }

// toDetachMessage describes what is done about the volumes of a Node whose machine is gone.
func toDetachMessage(node string, blockers []string) string {
	text := "Deleting the VolumeAttachments of Node " + node + ", whose instance is gone"
	if len(blockers) > 0 {
		text += ": " + strings.Join(blockers, "; ")
	}
	return text
}

// detachErrors are why VolumeAttachments cannot be deleted, each error once.
func detachErrors(attachments []attachment, attempts map[types.UID]*attempt) []string {
	slices.SortFunc(attachments, func(a, b attachment) int { return strings.Compare(a.Name, b.Name) })
	var blockers []string
	reported := map[string]bool{}
	for _, a := range attachments {
		if known := attempts[a.UID]; known != nil && known.failures > 0 && !reported[known.reason] {
			reported[known.reason] = true
			blockers = append(blockers, "cannot delete VolumeAttachment "+a.Name+": "+known.reason)
		}
	}
	return blockers[:min(len(blockers), namesInMessage)]
}
