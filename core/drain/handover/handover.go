// Package handover follows PersistentVolumes from a Node that is drained to the Nodes of the pods' successors. While one is
// on its way no other pod with volumes is evicted, as MCM has it: detaching and attaching is what takes clouds long, and a
// pod that waits for it does not serve. All functions are pure; volumes are known by the names of their PersistentVolumes.
package handover

import (
	"slices"
	"time"
)

// Handover is the way of a PersistentVolume from a pod that was evicted to the Node of its successor.
type Handover struct {
	Stage Stage
	// Deadline is when the stage is over in any case.
	Deadline time.Time
}

// Stage is how far a handover is.
type Stage string

const (
	// Leaving means that the pod is still ending.
	Leaving Stage = "leaving"
	// Detaching means that the pod is gone, and the volume is attached to the Node.
	Detaching Stage = "detaching"
	// Stuck means that detaching has taken too long, and is not waited for any more.
	Stuck Stage = "stuck"
	// Reattaching means that the volume has left the Node, and is not attached to another one.
	Reattaching Stage = "reattaching"
)

// Pending reports whether the next pod must wait.
func (h Handover) Pending() bool { return h.Stage == Detaching || h.Stage == Reattaching }

// State is what the handovers of a Node depend on.
type State struct {
	Now time.Time
	// Leaving are the volumes of pods that are being deleted and exist still, with the time at which the pod ends.
	Leaving map[string]time.Time
	// Attached are the volumes that are attached to the Node, with the time at which detaching began; zero when that is not
	// known.
	Attached map[string]time.Time
	// InUse reports whether a pod on the Node uses a volume.
	InUse func(volume string) bool
	// Elsewhere reports whether a volume is attached to another Node.
	Elsewhere func(volume string) bool
	// Exists reports whether there is such a PersistentVolume.
	Exists func(volume string) bool
	// DetachTimeout and ReattachTimeout are how long the stages may take.
	DetachTimeout, ReattachTimeout time.Duration
}

// Move updates the handovers, and begins those of the volumes that are leaving.
func Move(before map[string]Handover, s State) map[string]Handover {
	after := map[string]Handover{}
	for name, ends := range s.Leaving {
		after[name] = Handover{Leaving, ends.Add(s.DetachTimeout)}
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

// next is the stage of a volume whose pod is gone. goesOn is false when the handover is over.
func (h Handover) next(name string, s State) (next Handover, goesOn bool) {
	_, attached := s.Attached[name]
	switch {
	case attached && (h.Stage == Stuck || !s.Now.Before(h.Deadline)):
		return Handover{Stuck, h.Deadline}, true
	case attached:
		return Handover{Detaching, h.Deadline}, true
	case s.Elsewhere(name) || !s.Exists(name):
		return Handover{}, false
	case h.Stage != Reattaching:
		return Handover{Reattaching, s.Now.Add(s.ReattachTimeout)}, true
	default:
		return h, s.Now.Before(h.Deadline)
	}
}

// clockTolerance is by how much the clock of the target cluster, which stamps VolumeAttachments, may be behind that of this
// process, which stamps the start of drains.
const clockTolerance = time.Minute

// Arriving is a volume that has been assigned to another Node.
type Arriving struct {
	// Volume is the name of the PersistentVolume, Created when it was assigned.
	Volume  string
	Created time.Time
	// Attached reports whether it is attached there.
	Attached bool
}

// Resume finds the handovers that were under way when the drain was interrupted, as by a restart: volumes
// that are attached to the Node although no pod on it uses them, and volumes that since the drain began have been
// assigned to another Node and are not attached there yet. The latter may belong to another drain; then it waits
// for a moment without success.
func Resume(s State, began time.Time, arriving []Arriving) map[string]Handover {
	found := map[string]Handover{}
	for name, since := range s.Attached {
		if s.InUse(name) {
			continue
		}
		if since.IsZero() {
			since = s.Now
		}
		found[name] = Handover{Detaching, since.Add(s.DetachTimeout)}
	}
	for _, a := range arriving {
		deadline := a.Created.Add(s.ReattachTimeout)
		if _, here := s.Attached[a.Volume]; !here && !a.Attached && !began.IsZero() && !a.Created.Before(began.Add(-clockTolerance)) &&
			s.Now.Before(deadline) {
			found[a.Volume] = Handover{Reattaching, deadline}
		}
	}
	return found
}

// In names the volumes whose handover is in a stage, sorted.
func In(handovers map[string]Handover, stage Stage) []string {
	var names []string
	for name, h := range handovers {
		if h.Stage == stage {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
