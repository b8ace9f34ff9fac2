package drain

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// handover is the way of a PersistentVolume from a pod that was evicted to the Node of its successor. While one is on its way
// no other pod with volumes is evicted, as MCM has it: detaching and attaching is what takes clouds long, and a pod that waits
// for it does not serve.
type handover struct {
	stage stage
	// deadline is when the stage is over in any case.
	deadline time.Time
}

// stage is how far a handover is.
type stage string

const (
	// leaving means that the pod is still ending.
	leaving stage = "leaving"
	// detaching means that the pod is gone, and the volume is attached to the Node.
	detaching stage = "detaching"
	// stuck means that detaching has taken too long, and is not waited for any more.
	stuck stage = "stuck"
	// reattaching means that the volume has left the Node, and is not attached to another one.
	reattaching stage = "reattaching"
)

// pending reports whether the next pod must wait.
func (h handover) pending() bool { return h.stage == detaching || h.stage == reattaching }

// surroundings is what the handovers of a Node depend on.
type surroundings struct {
	now      time.Time
	pods     map[types.UID]*Pod
	attempts map[types.UID]*attempt
	volumes  *nodeVolumes
	// awaited reports whether a PersistentVolume exists and is attached to no other Node.
	awaited func(string) bool
	// detachTimeout and reattachTimeout are how long the stages may take.
	detachTimeout, reattachTimeout time.Duration
}

// move updates the handovers, and begins those of the volumes whose pods are leaving.
func (s surroundings) move(before map[string]handover) map[string]handover {
	after := map[string]handover{}
	for uid, names := range s.volumes.own(s.pods) {
		ends := s.now
		if deletion := s.pods[uid].DeletionTimestamp; deletion != nil {
			ends = *deletion
		} else if a := s.attempts[uid]; a == nil || !a.ok {
			continue
		}
		for _, name := range names {
			after[name] = handover{leaving, ends.Add(s.detachTimeout)}
		}
	}
	for name, h := range before {
		if _, found := after[name]; found {
			continue
		}
		if next, goesOn := s.next(name, h); goesOn {
			after[name] = next
		}
	}
	return after
}

// next is the stage of a volume whose pod is gone. goesOn is false when the handover is over.
func (s surroundings) next(name string, h handover) (next handover, goesOn bool) {
	_, attached := s.volumes.attached[name]
	switch {
	case attached && (h.stage == stuck || !s.now.Before(h.deadline)):
		return handover{stuck, h.deadline}, true
	case attached:
		return handover{detaching, h.deadline}, true
	case !s.awaited(name):
		return handover{}, false
	case h.stage != reattaching:
		return handover{reattaching, s.now.Add(s.reattachTimeout)}, true
	default:
		return h, s.now.Before(h.deadline)
	}
}

// inStage names the volumes whose handover is in a stage, sorted.
func inStage(handovers map[string]handover, of stage) []string {
	var names []string
	for name, h := range handovers {
		if h.stage == of {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// moveHandovers updates the handovers. It is called under mu when pods and volumes are known.
func (n *nodeDrain) moveHandovers(c circumstances) {
	options := &n.drainer.options
	n.handovers = surroundings{
		now: c.now, pods: n.pods, attempts: n.attempts, volumes: c.volumes,
		detachTimeout: options.DetachTimeout, reattachTimeout: options.ReattachTimeout,
		awaited: func(name string) bool {
			_, exists := n.target.volumes.get(name)
			return exists && !slices.ContainsFunc(n.target.attachments.find(ofVolume(name)), func(a attachment) bool {
				return a.Status.Attached && a.Spec.NodeName != n.node
			})
		},
	}.move(n.handovers)
}
