package overshoot

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// FrozenLabel on a MachineDeployment or MachineSet stops the creation of its Machines: set by the core with the values Overshoot and
	// ByDeployment, by a user with any other.
	FrozenLabel = "safety.millwright.dev/frozen"
	// Overshoot is the value that the core sets, and removes itself.
	Overshoot = "overshoot"
	// ByDeployment is the value on the MachineSets of a MachineDeployment that has the label. The core removes it with that.
	ByDeployment = "machinedeployment"
	// FrozenBecauseAnnotation is written beside Overshoot: the numbers.
	FrozenBecauseAnnotation = "safety.millwright.dev/frozen-because"
	// UnfreezeAnnotation has the core remove, whatever its value, the label, whatever has set it, and the annotation.
	UnfreezeAnnotation = "safety.millwright.dev/unfreeze"
	// MCMUnfreezeAnnotation is that of Gardener's machine-controller-manager, with the same effect.
	MCMUnfreezeAnnotation = "safety.machine.sapcloud.io/unfreeze"
	// UnfrozenAtAnnotation is written when a user has unfrozen it: it is not frozen again for Options.Period from then.
	UnfrozenAtAnnotation = "safety.millwright.dev/unfrozen-at"
)

// Guard knows what is frozen: by the label of an object, or because this process has concluded it and the label was refused. The
// zero value is ready for use; nil goes by labels alone.
type Guard struct {
	mu sync.Mutex
	// refused has, for each object whose label could not be written, what this process has concluded and why it is not written.
	refused map[types.UID]refusal
	changed []func(client.Object)
}

// refusal is a change of the label that is not written.
type refusal struct {
	// because has the numbers of a freeze that is not written; "" when there is none.
	because string
	// text is why, in the API server's words; "" when it has not refused it, but did not do it either.
	text string
	// end is why the end of a freeze was refused, in the API server's words; the freeze continues.
	end string
}

// OnChange has f called with each object whose state has changed and whose label has not. f must not block.
func (g *Guard) OnChange(f func(client.Object)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed = append(g.changed, f)
}

// note remembers what was refused, and reports whether that is new.
func (g *Guard) note(object client.Object, what refusal) bool {
	g.mu.Lock()
	before := g.refused[object.GetUID()]
	if before == what {
		g.mu.Unlock()
		return false
	}
	if what == (refusal{}) {
		delete(g.refused, object.GetUID())
	} else {
		if g.refused == nil {
			g.refused = map[types.UID]refusal{}
		}
		g.refused[object.GetUID()] = what
	}
	changed := g.changed
	g.mu.Unlock()
	for _, f := range changed {
		f(object)
	}
	return true
}

// drop forgets an object that no longer exists.
func (g *Guard) drop(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.refused, uid)
}

func (g *Guard) refusalOf(object metav1.Object) refusal {
	if g == nil {
		return refusal{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused[object.GetUID()]
}

// Of reports why no Machine of an object is created; "" when some are. owner is the deployment of a set, nil if it has none.
func (g *Guard) Of(object, owner metav1.Object) (reason, message string) {
	value := object.GetLabels()[FrozenLabel]
	if owner == nil && value == ByDeployment && deploymentOf(object) != nil {
		return FrozenByLabelReason, fmt.Sprintf("by the label %s=%s its MachineDeployment is frozen; the MachineDeployment cannot be read", FrozenLabel, value)
	}
	if owner == nil || value != ByDeployment {
		if reason, message := g.self(object); reason != "" {
			return reason, message
		}
	}
	if owner == nil {
		return "", ""
	}
	if reason, message = g.self(owner); reason != "" {
		message = "MachineDeployment " + owner.GetName() + ": " + message
	}
	return reason, message
}

// self is Of for an object alone.
func (g *Guard) self(object metav1.Object) (reason, message string) {
	value, labelled := object.GetLabels()[FrozenLabel]
	refused := g.refusalOf(object)
	switch {
	case !labelled && refused.because != "" && refused.text == "":
		reason, message = OvershootReason, fmt.Sprintf("%s\nThe label %s is not written yet", refused.because, FrozenLabel)
	case !labelled && refused.because != "":
		reason, message = OvershootReason, fmt.Sprintf("%s\nThe label %s is refused, so a restart of the core forgets it: %s",
			refused.because, FrozenLabel, refused.text)
	case !labelled:
		return "", ""
	case value == Overshoot:
		reason, message = OvershootReason, object.GetAnnotations()[FrozenBecauseAnnotation]
	default:
		reason = FrozenByLabelReason
		message = fmt.Sprintf("a user has set the label %s=%s", FrozenLabel, value)
	}
	switch {
	case refused.end != "" && labelled:
		message += "\nThe freeze is over, but removing the label is refused: " + refused.end
	case refused.end != "":
		message += "\nAn annotation asks for its end, but removing the annotation is refused: " + refused.end
	}
	return reason, message
}

// LabelOfSet is the value that the label of a set ought to have, and whether it ought to have any, by what is known of its deployment.
// deployment is nil when the set has none, or when that cannot be read.
func LabelOfSet(set, deployment metav1.Object) (string, bool) {
	value, labelled := set.GetLabels()[FrozenLabel]
	if labelled && value != ByDeployment {
		return value, true
	}
	if deployment == nil {
		// Nothing is concluded from the absence of a deployment.
		return value, labelled && deploymentOf(set) != nil
	}
	_, frozen := deployment.GetLabels()[FrozenLabel]
	return ByDeployment, frozen
}

// deploymentOf is the deployment that controls a set; nil when none does.
func deploymentOf(set metav1.Object) *metav1.OwnerReference {
	if owner := metav1.GetControllerOf(set); owner != nil && owner.Kind == "MachineDeployment" {
		return owner
	}
	return nil
}
