package drain

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// namesInMessage is how many pods of each list a message names; conditions are read by people.
const namesInMessage = 3

// toMessage words a Result. The times in it are left out, so that it is equal while nothing changes.
func toMessage(node string, r *Result, problems []string) string {
	if r.Done {
		return ""
	}
	parts := slices.Clone(problems)
	add := func(what string, pods []types.NamespacedName) {
		if len(pods) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", what, names(pods)))
		}
	}
	add("evicting", keys(r.Evicting))
	add("waiting for termination of", keys(r.Terminating))
	for _, group := range byReason(r.Blocked) {
		parts = append(parts, fmt.Sprintf("cannot evict %s: %s", names(group.pods), group.reason))
	}
	add("waiting for completion of", keys(r.Completing))
	add("after them:", keys(r.Later))
	if len(parts) == 0 {
		parts = append(parts, "reading its pods")
	}
	return fmt.Sprintf("Draining Node %s: %s", node, strings.Join(parts, "; "))
}

// blockedGroup is pods that are blocked for the same reason.
type blockedGroup struct {
	reason string
	pods   []types.NamespacedName
}

// byReason groups blocked pods: by their PodDisruptionBudget where one is known, else by the words. The counts
// in the server's words differ from pod to pod, so that of the first pod stands for its budget.
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
		}
		group, ok := index[key]
		if !ok {
			group = &blockedGroup{reason: reason}
			index[key] = group
			groups = append(groups, group)
		}
		group.pods = append(group.pods, pod.Pod)
	}
	return groups
}

// names lists the first pods and counts the others.
func names(pods []types.NamespacedName) string {
	shown := make([]string, 0, namesInMessage)
	for _, pod := range pods[:min(len(pods), namesInMessage)] {
		shown = append(shown, pod.String())
	}
	noun := "pod"
	if len(pods) > 1 {
		noun = "pods"
	}
	list := fmt.Sprintf("%s %s", noun, strings.Join(shown, ", "))
	if more := len(pods) - len(shown); more > 0 {
		list = fmt.Sprintf("%s and %d more", list, more)
	}
	return list
}

func sortStatuses(pods []PodStatus) {
	slices.SortFunc(pods, func(a, b PodStatus) int { return strings.Compare(a.Pod.String(), b.Pod.String()) })
}

func keys(pods []PodStatus) []types.NamespacedName {
	result := make([]types.NamespacedName, 0, len(pods))
	for i := range pods {
		result = append(result, pods[i].Pod)
	}
	return result
}
