package machine

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
)

// RecordNotKeptError means that the API server accepted the record of a Machine and did not keep all of it.
type RecordNotKeptError struct {
	// Lost are the annotations that were not kept.
	Lost []string
}

// Error names what was not kept and who may be the cause.
func (e *RecordNotKeptError) Error() string {
	return "the API server accepted annotations of the Machine and did not keep " + strings.Join(e.Lost, ", ") +
		": look for a mutating webhook or policy that removes them"
}

// recordDesired records what the Machine desires before it has a Node: in the patch that sets the provider ID, so that the
// first change of the Node has to wait for no other.
func (s *scope) recordDesired() {
	if s.Original.Status.NodeRef.IsDefined() {
		return
	}
	record, _ := recordOf(s.Object)
	record.believed(&corev1.Node{}, s.desired(), nodeKnown{}).writeTo(s.Object)
}

// recordedDesired is the desired state with what the Machine, as the API server has it, records of the Node.
func (s *scope) recordedDesired(initialized bool) DesiredNode {
	desired := s.desired()
	record, recorded := recordOf(s.Original)
	desired.Record = record.believed(s.node, desired, nodeKnown{
		recorded: recorded, linked: s.Original.Status.NodeRef.Name == s.node.Name, synced: s.sync.once,
	})
	desired.Initialized = initialized || desired.Record.initialized(s.node.UID)
	return desired
}

// beginRecord gives a Machine its first record.
func (s *scope) beginRecord(desired DesiredNode) {
	if _, recorded := recordOf(s.Original); !recorded {
		desired.Record.writeTo(s.Object)
	}
}

// recordFirst has the Machine record what a change of the Node needs, before that change is sent: a process that dies in
// between leaves a record of what is not there, and nothing without a record. The event of the Machine's own patch brings the next
// reconcile. What the API server does not accept is tried again less and less often.
func (r *Reconciler) recordFirst(s *scope, needed NodeRecord) outcome.Outcome {
	if record, recorded := recordOf(s.Original); recorded && record.covers(needed) {
		return outcome.Continue()
	}
	if attempt := r.syncs.tooEarly(s.Key(), s.Original.UID, needed.sum(), s.Now); attempt != nil {
		return s.awaitSync(attempt)
	}
	needed.writeTo(s.Object)
	s.recording = &needed
	return outcome.Wait()
}

// notRecorded handles that the API server has not accepted the record that a change of the Node needs.
func (r *Reconciler) notRecorded(s *scope, err error) {
	r.syncs.fail(s.Key(), s.Original.UID, s.recording.sum(), err, s.Now)
	s.sync.err = err
}

// recordKept returns an error when the API server has not kept all of the record that was written.
func (s *scope) recordKept() error {
	record, recorded := recordOf(s.Object)
	if recorded && record.covers(*s.recording) {
		return nil
	}
	desired := &clusterv1.Machine{}
	s.recording.writeTo(desired)
	lost := slices.DeleteFunc(slices.Sorted(maps.Keys(desired.Annotations)), func(key string) bool {
		value, ok := s.Object.Annotations[key]
		return ok && value == desired.Annotations[key]
	})
	return &RecordNotKeptError{Lost: lost}
}

// withholdLink leaves a Machine that has no record unlinked: one that is linked and has none was linked by another core,
// and the annotations of its Node would count.
func (s *scope) withholdLink() {
	if _, recorded := recordOf(s.Object); !recorded && !s.Deleting() && !s.Original.Status.NodeRef.IsDefined() {
		s.Object.Status.NodeRef, s.Object.Status.NodeInfo = s.Original.Status.NodeRef, s.Original.Status.NodeInfo
	}
}

// sum identifies the content of a record.
func (r NodeRecord) sum() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %t", r.Labels, r.Taints, r.Initialized != nil))
}

// turns remembers which Nodes this process has initialized, until their Machines record it: a taint that is removed
// within that moment does not come again. The zero value is ready for use.
type turns struct {
	mutex sync.Mutex
	of    map[types.NamespacedName]turn
}

// turn is a Node that was initialized for a Machine.
type turn struct{ machine, node types.UID }

// add remembers that a Node was initialized.
func (t *turns) add(key types.NamespacedName, machine, node types.UID) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.of == nil {
		t.of = map[types.NamespacedName]turn{}
	}
	t.of[key] = turn{machine, node}
}

// had reports whether this process has initialized a Node.
func (t *turns) had(key types.NamespacedName, machine, node types.UID) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return node != "" && t.of[key] == turn{machine, node}
}

// forget drops what is remembered of a Machine that no longer exists.
func (t *turns) forget(key types.NamespacedName) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.of, key)
}
