package machine

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/inframachine"
)

const (
	// ForceDeletionAnnotation on a Machine that is being deleted, with the value "true", turns the drain of its
	// Node into a forced one, at once and at any moment.
	ForceDeletionAnnotation = inframachine.ForceDeletionAnnotation
	// ForceDeletionLabel is the label of the Machine Controller Manager with the same meaning. It counts, too.
	ForceDeletionLabel = "force-deletion"
	// DefaultDrainTimeout is how long a drain may take when neither the Machine nor a flag sets a timeout.
	DefaultDrainTimeout = 2 * time.Hour
	// notReadyTimeout is how long a Node may have been not ready, or its file system read-only, until its drain
	// is forced. It is that of the Machine Controller Manager.
	notReadyTimeout = 5 * time.Minute
	// readonlyFilesystem is the condition of that name that the node-problem-detector sets.
	readonlyFilesystem corev1.NodeConditionType = "ReadonlyFilesystem"
)

// forcing is whether a drain is to be forced.
type forcing struct {
	// cause is why it is; empty when it is not.
	cause string
	// atOnce is true when a user wants the machine deleted at once, so that volumes are not waited for.
	atOnce bool
	// rest is the time until it will be, zero when that does not depend on time.
	rest time.Duration
}

// deadline requeues the Machine for when the drain becomes a forced one.
func (f forcing) deadline() outcome.Outcome {
	if f.rest <= 0 {
		return outcome.Continue()
	}
	return outcome.ContinueAfter(f.rest)
}

// after is a forcing that begins when rest is over.
func after(rest time.Duration, cause string) forcing {
	if rest <= 0 {
		return forcing{cause: cause}
	}
	return forcing{rest: rest}
}

// or joins two forcings: the first cause counts, else the earlier deadline.
func (f forcing) or(other forcing) forcing {
	joined := forcing{cause: cmp.Or(f.cause, other.cause), rest: f.rest, atOnce: f.atOnce || other.atOnce}
	if joined.rest == 0 || other.rest > 0 && other.rest < joined.rest {
		joined.rest = other.rest
	}
	return joined
}

// forced reports whether the drain is to be forced: because a user wants it, because the Node has been unhealthy
// for long, or because time is up.
func (s *scope) forced() forcing {
	return forcedByUser(s.Object).or(forcedByNode(s.node, s.Now)).or(s.forcedByTime())
}

func forcedByUser(m *clusterv1.Machine) forcing {
	if isTrue(m.Annotations[ForceDeletionAnnotation]) {
		return forcing{cause: "the annotation " + ForceDeletionAnnotation + " is set", atOnce: true}
	}
	if isTrue(m.Labels[ForceDeletionLabel]) {
		return forcing{cause: "the label " + ForceDeletionLabel + " is set", atOnce: true}
	}
	return forcing{}
}

func isTrue(text string) bool {
	value, err := strconv.ParseBool(text)
	return err == nil && value
}

// forcedByNode evaluates the Node's conditions. Ready must be True and ReadonlyFilesystem False; both may be absent. The time of a
// transition is that of the Node's clock, or of the control plane's for a Node that does not answer: no own record of it would
// survive a restart of the core. So a Node whose clock is behind by more than notReadyTimeout is drained by force as soon as it is
// not ready. Kubernetes expects synchronized clocks.
func forcedByNode(node *corev1.Node, now time.Time) forcing {
	result := forcing{}
	if node == nil {
		return result
	}
	good := map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, readonlyFilesystem: corev1.ConditionFalse,
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if status, matters := good[c.Type]; matters && c.Status != status {
			cause := fmt.Sprintf("the Node has been %s=%s for more than %s", c.Type, c.Status, notReadyTimeout)
			result = result.or(after(c.LastTransitionTime.Add(notReadyTimeout).Sub(now), cause))
		}
	}
	return result
}

// forcedByTime applies the timeout of the drain. Once only volumes are waited for, their timeout counts instead; a drain
// that had been forced before stays so.
func (s *scope) forcedByTime() forcing {
	if !s.begun(drainStart) {
		return forcing{}
	}
	until := s.Now
	if s.begun(volumesStart) {
		// It is recorded in whole seconds.
		until = s.Object.Status.Deletion.WaitForNodeVolumeDetachStartTime.Add(time.Second)
	}
	timeout, name := s.options.drainTimeout(), "--machine-drain-timeout"
	if own := s.Object.Spec.Deletion.NodeDrainTimeoutSeconds; own != nil {
		timeout, name = time.Duration(*own)*time.Second, "spec.deletion.nodeDrainTimeoutSeconds"
	}
	rest, limited := remaining(s.Object.Status.Deletion.NodeDrainStartTime, timeout, until)
	if !limited || rest > 0 && s.begun(volumesStart) {
		return forcing{}
	}
	return after(rest, fmt.Sprintf("%s, %s, is over", name, timeout))
}

// drainTimeout is the timeout of Machines that set none; not positive for no timeout.
func (o *Options) drainTimeout() time.Duration { return cmp.Or(o.DrainTimeout, DefaultDrainTimeout) }
