package drain

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
)

// Decision is what is done about a pod, and when.
type Decision struct {
	// Action is what to do.
	Action Action
	// Order groups the pods: those of a higher order are left alone until all of lower orders are gone.
	Order int32
}

// circumstances is what a decision rests on besides the pod. Everything in it has been read, except the volumes.
type circumstances struct {
	now         time.Time
	unreachable bool
	// daemonSets reports whether the DaemonSet with a UID exists.
	daemonSets func(types.UID) bool
	rules      *Rules
	// namespaces returns the labels of a namespace.
	namespaces func(string) labels.Set
	// returnInterval is how long a pod that has returned is left alone.
	returnInterval time.Duration
	// volumes are what is attached to the Node; nil when volumes play no part.
	volumes *nodeVolumes
	// handovers are the volumes on their way to other Nodes.
	handovers map[string]handover
}

// decide returns what is done about a pod. The rules and their order are those of Cluster API, which took the first three
// from kubectl: https://cluster-api.sigs.k8s.io/tasks/automated-machine-management/machine_deletions
func decide(pod *Pod, c circumstances) Decision {
	drainLabel := pod.Labels[clusterv1.PodDrainLabel]
	switch {
	case c.unreachable && pod.DeletionTimestamp != nil && !c.now.Before(lostAt(pod)):
		// The pod would be gone if its Node could still report it.
		return Decision{Action: Skip}
	case pod.DaemonSet != "" && !pod.Finished && c.daemonSets(pod.DaemonSet):
		// Its DaemonSet would put it back on the Node at once.
		return Decision{Action: Skip}
	case pod.Mirror:
		// Only the kubelet's manifest directory can end a static pod.
		return Decision{Action: Skip}
	case strings.EqualFold(drainLabel, "skip"):
		return Decision{Action: Skip}
	case strings.EqualFold(drainLabel, "wait-completed"), strings.EqualFold(drainLabel, "waitcompleted"):
		return Decision{Action: WaitCompleted}
	default:
		return c.rules.decide(pod, c.namespaces)
	}
}

// lostAt is when a terminating pod of an unreachable Node counts as lost.
func lostAt(pod *Pod) time.Time { return pod.DeletionTimestamp.Add(unreachableGrace) }
