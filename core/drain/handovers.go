package drain

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/core/drain/handover"
)

// surroundings is what the handovers of a Node depend on.
type surroundings struct {
	now     time.Time
	pods    map[types.UID]*Pod
	volumes *nodeVolumes
	// evicted reports whether the eviction of a pod was granted.
	evicted func(*Pod) bool
	// elsewhere reports whether a PersistentVolume is attached to another Node.
	elsewhere func(string) bool
	// exists reports whether there is such a PersistentVolume.
	exists func(string) bool
	// detachTimeout and reattachTimeout are how long the stages may take.
	detachTimeout, reattachTimeout time.Duration
}

// state is the same for volumes instead of pods.
func (s surroundings) state() handover.State {
	state := handover.State{
		Now: s.now, Leaving: map[string]time.Time{}, Attached: make(map[string]time.Time, len(s.volumes.attached)),
		InUse: s.inUse, Elsewhere: s.elsewhere, Exists: s.exists, DetachTimeout: s.detachTimeout, ReattachTimeout: s.reattachTimeout,
	}
	for name, volume := range s.volumes.attached {
		state.Attached[name] = volume.ending
	}
	for uid, names := range s.volumes.own(s.pods) {
		pod := s.pods[uid]
		if pod.DeletionTimestamp == nil && !s.evicted(pod) {
			continue
		}
		ends := s.now
		if pod.DeletionTimestamp != nil {
			ends = *pod.DeletionTimestamp
		}
		for _, name := range names {
			state.Leaving[name] = ends
		}
	}
	return state
}

// inUse reports whether a pod on the Node uses a PersistentVolume.
func (s surroundings) inUse(volume string) bool {
	for _, pod := range s.pods {
		if slices.Contains(s.volumes.of(pod), volume) {
			return true
		}
	}
	return false
}

// moveHandovers updates the handovers. It is called under mu when pods and volumes are known.
func (n *nodeDrain) moveHandovers(c circumstances) {
	options := &n.drainer.options
	s := surroundings{
		now: c.now, pods: n.pods, volumes: c.volumes, detachTimeout: options.DetachTimeout, reattachTimeout: options.ReattachTimeout,
		evicted: func(pod *Pod) bool {
			a := n.attempts[pod.UID]
			return a != nil && a.ok
		},
		elsewhere: func(name string) bool {
			for _, a := range n.target.attachments.find(ofVolume(name)) {
				if a.attached && a.node != n.node {
					return true
				}
			}
			return false
		},
		exists: func(name string) bool {
			_, found := n.target.volumes.get(name)
			return found
		},
	}
	state := s.state()
	if !n.resumed {
		n.resumed = true
		n.handovers = handover.Resume(state, n.request.Began, toArriving(n.target.attachments.all(func(a attachment) bool {
			return a.node != n.node && a.volume != ""
		})))
	}
	n.handovers = handover.Move(n.handovers, state)
}

// toArriving are the volumes of VolumeAttachments of other Nodes.
func toArriving(attachments []attachment) []handover.Arriving {
	arriving := make([]handover.Arriving, 0, len(attachments))
	for _, a := range attachments {
		arriving = append(arriving, handover.Arriving{Volume: a.volume, Created: a.created, Attached: a.attached})
	}
	return arriving
}
