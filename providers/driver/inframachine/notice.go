package inframachine

import (
	"context"
	"encoding/json"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// NoticeAnnotation holds the latest Notice about the instance of an object. Who receives what the cloud announces writes it, before it
// confirms the receipt, so that nothing is lost when the process exits. Anyone who may write the object may forge it, for this object
// alone: it is reported and makes the object not ready for a while, and nothing is ended because of it: see Reconciler.Interrupted.
const NoticeAnnotation = "infrastructure.millwright.dev/notice"

// NoticeKind is what is announced.
type NoticeKind string

const (
	// NoticeInterruption announces that the cloud takes the instance back within minutes.
	NoticeInterruption NoticeKind = "Interruption"
	// NoticeRebalance is the cloud's recommendation to replace the instance, since it is likely to be taken back.
	NoticeRebalance NoticeKind = "Rebalance"
)

// Notice is what the cloud has announced about one instance.
type Notice struct {
	// Kind of notice.
	Kind NoticeKind `json:"kind"`
	// ProviderID of the instance that it is about. It does not count for another one of the same object.
	ProviderID string `json:"providerID"`
	// At is when the cloud announced it.
	At time.Time `json:"at"`
	// Deadline is when it takes effect; zero if the cloud does not say.
	Deadline time.Time `json:"deadline,omitzero"`
}

// How long after it was announced a notice counts. An instance that is still there after that has not been taken back.
const (
	interruptionCounts = 15 * time.Minute
	rebalanceCounts    = 24 * time.Hour
)

// PutNotice writes the notice into the object's annotations, and returns whether that has changed them. One that says less than what is
// there is left out: an earlier one, or a recommendation where an interruption was announced.
func PutNotice(obj client.Object, n Notice) bool {
	n.At, n.Deadline = n.At.UTC().Truncate(time.Second), n.Deadline.UTC().Truncate(time.Second)
	if old := readNotice(obj); old != nil && old.ProviderID == n.ProviderID {
		if !n.At.After(old.At) && n.Kind == old.Kind || n.Kind == NoticeRebalance && old.Kind == NoticeInterruption {
			return false
		}
	}
	text, err := json.Marshal(n)
	if err != nil {
		return false
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[NoticeAnnotation] = string(text)
	obj.SetAnnotations(annotations)
	return true
}

// readNotice returns the notice in the object's annotations; nil if there is none that can be read.
func readNotice(obj client.Object) *Notice {
	n := &Notice{}
	if json.Unmarshal([]byte(obj.GetAnnotations()[NoticeAnnotation]), n) != nil {
		return nil
	}
	if n.Kind != NoticeInterruption && n.Kind != NoticeRebalance {
		return nil
	}
	return n
}

// counts returns how long yet the notice counts for the instance.
func (n *Notice) counts(providerID string, now time.Time) time.Duration {
	if n == nil || n.ProviderID == "" || n.ProviderID != providerID || n.At.After(now.Add(time.Minute)) {
		return 0
	}
	counts := rebalanceCounts
	if n.isInterruption() {
		counts = interruptionCounts
	}
	return max(n.At.Add(counts).Sub(now), 0)
}

func (n *Notice) isInterruption() bool { return n != nil && n.Kind == NoticeInterruption }

func (n *Notice) reason() string {
	if n.isInterruption() {
		return driverv1.InterruptionImminentReason
	}
	return driverv1.RebalanceRecommendedReason
}

// String describes the notice for people.
func (n *Notice) String() string {
	at := n.At.UTC().Format(time.RFC3339)
	switch {
	case !n.isInterruption():
		return "The cloud has recommended at " + at + " to replace the instance, which it is likely to take back"
	case n.Deadline.IsZero():
		return "The cloud has announced at " + at + " that it takes the instance back"
	}
	return "The cloud has announced at " + at + " that it takes the instance back at " + n.Deadline.UTC().Format(time.RFC3339)
}

// checkNotice takes in what the cloud has announced about the instance. One that is taken back is looked at often from then on.
func (r *Reconciler[M]) checkNotice(_ context.Context, s *scope[M]) outcome.Outcome {
	n := readNotice(s.Object)
	left := n.counts(s.handle.ProviderID, s.Now)
	if left == 0 || s.observed.failure != nil {
		return outcome.Continue()
	}
	s.observed.notice = n
	if n.isInterruption() {
		r.inventory.Track(s.Key(), s.handle, true)
	}
	return outcome.ContinueAfter(left)
}
