package drain

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// handover is the way of a PersistentVolume from a pod that was evicted to the Node of its successor. While one is
// under way no other pod with volumes is evicted, as MCM has it: detaching and attaching is what takes clouds long,
// and a pod that waits for it does not serve.
type handover struct {
	stage handoverStage
	// deadline is when the stage is over in any case.
	deadline time.Time
}

type handoverStage string

const (
	// leaving means that the pod is still ending.
	leaving handoverStage = "leaving"
	// detaching means that the pod has gone, and the volume is attached to the Node.
	detaching handoverStage = "detaching"
	// stuck means that detaching has taken too long, and is not waited for any more.
	stuck handoverStage = "stuck"
	// reattaching means that the volume has left the Node, and is not attached to another one.
	reattaching handoverStage = "reattaching"
)

// pending says whether the next pod must wait.
func (h handover) pending() bool { return h.stage == detaching || h.stage == reattaching }

// surroundings is what the handovers of a Node depend on.
type surroundings struct {
	now     time.Time
	pods    map[types.UID]*Pod
	volumes *nodeVolumes
	// evicted says whether the eviction of a pod was granted.
	evicted func(*Pod) bool
	// elsewhere says whether a PersistentVolume is attached to another Node.
	elsewhere func(string) bool
	// exists says whether there is such a PersistentVolume.
	exists func(string) bool
	// detachTimeout and reattachTimeout are how long the stages may take.
	detachTimeout, reattachTimeout time.Duration
}

// moveHandovers brings the handovers up to date, and begins those of the pods that have been told to go.
func moveHandovers(before map[string]handover, s surroundings) map[string]handover {
	after := map[string]handover{}
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
			after[name] = handover{leaving, ends.Add(s.detachTimeout)}
		}
	}
	for name, h := range before {
		if _, known := after[name]; known {
			continue
		}
		if next, goesOn := h.next(name, s); goesOn {
			after[name] = next
		}
	}
	return after
}

// next is the stage of a volume whose pod has gone. goesOn is false when the handover is over.
func (h handover) next(name string, s surroundings) (next handover, goesOn bool) {
	_, attached := s.volumes.attached[name]
	switch {
	case attached && (h.stage == stuck || !s.now.Before(h.deadline)):
		return handover{stuck, h.deadline}, true
	case attached:
		return handover{detaching, h.deadline}, true
	case s.elsewhere(name) || !s.exists(name):
		return handover{}, false
	case h.stage != reattaching:
		return handover{reattaching, s.now.Add(s.reattachTimeout)}, true
	default:
		return h, s.now.Before(h.deadline)
	}
}

// clockTolerance is by how much the clock of the target cluster, which stamps VolumeAttachments, may be behind that of this
// process, which stamps the start of drains.
const clockTolerance = time.Minute

// resumeHandovers finds the handovers that were under way when the drain was interrupted, as by a restart: volumes
// that are attached to the Node although no pod on it uses them, and volumes that since the drain began have been
// assigned to another Node and are not attached there yet. The latter may belong to another drain; then it waits
// for a moment in vain.
func resumeHandovers(s surroundings, began time.Time, arriving []attachment) map[string]handover {
	used := map[string]bool{}
	for _, pod := range s.pods {
		for _, name := range s.volumes.of(pod) {
			used[name] = true
		}
	}
	found := map[string]handover{}
	for name, volume := range s.volumes.attached {
		if used[name] {
			continue
		}
		since := volume.ending
		if since.IsZero() {
			since = s.now
		}
		found[name] = handover{detaching, since.Add(s.detachTimeout)}
	}
	for _, a := range arriving {
		deadline := a.created.Add(s.reattachTimeout)
		if _, here := s.volumes.attached[a.volume]; !here && !a.attached && !began.IsZero() && !a.created.Before(began.Add(-clockTolerance)) && s.now.Before(deadline) {
			found[a.volume] = handover{reattaching, deadline}
		}
	}
	return found
}

// inStage names the volumes whose handover is in a stage.
func inStage(handovers map[string]handover, stage handoverStage) []string {
	var names []string
	for name, h := range handovers {
		if h.stage == stage {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
