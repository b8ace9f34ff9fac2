package drain

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// forcedAttempts is how often a forced drain tries each deletion.
const forcedAttempts = 2

// forced is what a forced plan rests on besides the circumstances.
type forced struct {
	*force
	pods map[types.UID]*Pod
	// listed is true when everything has been read that decisions about pods rest on.
	listed bool
	// detach is true when the VolumeAttachments of the Node are deleted.
	detach bool
	// attachments are the VolumeAttachments of the Node; read is true when they are known.
	attachments []attachment
	read        bool
}

// makeForcedPlan plans what a forced drain does next. It reads, and changes nothing.
func makeForcedPlan(f forced, c circumstances) *plan {
	result := &plan{over: !c.now.Before(f.deadline)}
	if !result.over {
		result.at(f.deadline)
	}
	if !f.listed {
		result.reading = true
		return result
	}
	for _, pod := range f.pods {
		switch {
		case pod.Returned && !pod.FirstSeen.Before(f.began):
			// Each pod is deleted once; its successor would come back as well.
			result.staying = append(result.staying, pod)
		case stays(pod, c):
			result.staying = append(result.staying, pod)
		default:
			result.placeForced(pod, f.force.pods[pod.UID], c.now)
		}
	}
	result.sort()
	result.reading = f.detach && !f.read
	if result.reading || !f.detach || !result.done() {
		// The volumes come after the pods.
		return result
	}
	for _, a := range f.attachments {
		known := f.force.attachments[a.UID]
		switch {
		case a.DeletionTimestamp != nil, known != nil && (known.ok || known.failures >= forcedAttempts):
		case known == nil || known.due(c.now):
			result.detach = append(result.detach, a)
		default:
			result.detaching = true
			if !known.inFlight {
				result.at(known.retryAt)
			}
		}
	}
	return result
}

// stays reports whether a forced drain, too, leaves a pod alone: those that would come back, those that cannot be
// deleted, and those that a rule or label excludes.
func stays(pod *Pod, c circumstances) bool {
	c.unreachable = false
	return decide(pod, c).Action == Skip
}

// placeForced puts a pod that is to be deleted where its deletion has got to. What the API server has accepted is
// not waited for.
func (p *plan) placeForced(pod *Pod, a *attempt, now time.Time) {
	switch {
	case a != nil && a.ok:
		p.released = append(p.released, pod)
	case a != nil && a.failures >= forcedAttempts:
		p.abandoned = append(p.abandoned, pod)
	default:
		p.place(pod, a, now)
	}
}
