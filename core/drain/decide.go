package drain

import (
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/drain/handover"
)

// unreachableGrace is how long after the end of its grace period a terminating pod of an unreachable Node is
// still waited for; it is also the grace period that such pods are evicted with. Cluster API has the same second.
const unreachableGrace = time.Second

// Action is what a drain does about a pod.
type Action string

const (
	// Evict means that the pod is evicted and its end awaited.
	Evict Action = "Evict"
	// Skip means that the pod stays, and the drain does not wait for it.
	Skip Action = "Skip"
	// WaitCompleted means that the pod is not evicted, and the drain waits until it is finished and gone.
	WaitCompleted Action = "WaitCompleted"
	// undecided means that something must be read first; the drain waits, the pod is left alone. The order that goes
	// with it is the lowest that may come out, so that nothing overtakes the pod meanwhile.
	undecided Action = "Undecided"
)

// Decision is what is done about a pod, and when.
type Decision struct {
	// Action is what to do.
	Action Action
	// Order groups the pods: those of a higher order are left alone until all of lower orders are gone.
	Order int32
}

// circumstances is what a decision rests on besides the pod.
type circumstances struct {
	now         time.Time
	unreachable bool
	daemonSets  daemonSetLookup
	rules       *Rules
	namespaces  namespaceLookup
	behaviour   func(*Pod) Decision
	// returnInterval is how long a pod that has returned is left alone.
	returnInterval time.Duration
	// volumes are what is attached to the Node; nil when volumes play no part.
	volumes *nodeVolumes
	// handovers are the volumes on their way to other Nodes.
	handovers map[string]handover.Handover
}

// daemonSetLookup reports whether the DaemonSet of a pod exists; known is false while that has not been read.
type daemonSetLookup func(*Pod) (exists, known bool)

// decide applies the rules in their order; the first that has an opinion decides. They are those of Cluster
// API, which took the first four from kubectl:
// https://cluster-api.sigs.k8s.io/tasks/automated-machine-management/machine_deletions
func decide(pod *Pod, c circumstances) Decision {
	rules := []func(*Pod, circumstances) (Decision, bool){
		lostWithNode,
		ofDaemonSet,
		static,
		labelled,
		byRules,
		byBehaviour,
	}
	for _, rule := range rules {
		if decision, ok := rule(pod, c); ok {
			return decision
		}
	}
	return Decision{Action: Evict}
}

// lostWithNode skips pods that would be gone if their Node could still report it.
func lostWithNode(pod *Pod, c circumstances) (Decision, bool) {
	if !c.unreachable || pod.DeletionTimestamp == nil {
		return Decision{}, false
	}
	return Decision{Action: Skip}, !c.now.Before(lostAt(pod))
}

// lostAt is when a terminating pod of an unreachable Node counts as lost.
func lostAt(pod *Pod) time.Time { return pod.DeletionTimestamp.Add(unreachableGrace) }

// ofDaemonSet skips pods of a DaemonSet, since it would put them back on the Node at once. Pods whose
// DaemonSet is deleted and pods that are finished are evicted like any other.
func ofDaemonSet(pod *Pod, c circumstances) (Decision, bool) {
	if pod.DaemonSet == "" || pod.Finished {
		return Decision{}, false
	}
	exists, known := c.daemonSets(pod)
	if known {
		return Decision{Action: Skip}, exists
	}
	c.daemonSets = func(*Pod) (bool, bool) { return false, true }
	orphan := decide(pod, c)
	if orphan.Action != Skip {
		orphan.Action = undecided
	}
	return orphan, true
}

// static skips mirror pods: only the kubelet's manifest directory can end the real one.
func static(pod *Pod, _ circumstances) (Decision, bool) {
	return Decision{Action: Skip}, pod.Mirror
}

// labelled obeys the label cluster.x-k8s.io/drain with the values skip and wait-completed, in any case. Other
// values do not count, as upstream has it.
func labelled(pod *Pod, _ circumstances) (Decision, bool) {
	switch value := pod.Labels[clusterv1.PodDrainLabel]; {
	case strings.EqualFold(value, "skip"):
		return Decision{Action: Skip}, true
	case strings.EqualFold(value, "wait-completed"), strings.EqualFold(value, "waitcompleted"):
		return Decision{Action: WaitCompleted}, true
	default:
		return Decision{}, false
	}
}

// byRules asks the MachineDrainRules.
func byRules(pod *Pod, c circumstances) (Decision, bool) {
	decision, ok := c.rules.decide(pod, c.namespaces)
	if ok && decision.Action == undecided && c.behaviour != nil {
		decision.Order = min(decision.Order, c.behaviour(pod).Order)
	}
	return decision, ok
}

// byBehaviour asks what the caller brought along.
func byBehaviour(pod *Pod, c circumstances) (Decision, bool) {
	if c.behaviour == nil {
		return Decision{}, false
	}
	return c.behaviour(pod), true
}
