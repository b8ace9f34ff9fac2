package machine

import (
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/drain"
	"millwright.dev/core/external"
	"millwright.dev/core/machines"
)

// finishedDrains remembers by Machine the result of its drain, for the last event of the Machine. That costs no write; after a
// restart the event has only what the status has.
type finishedDrains struct {
	mutex sync.Mutex
	known map[types.NamespacedName]finishedDrain
}

// finishedDrain is a drain that is over.
type finishedDrain struct {
	machine types.UID
	began   metav1.Time
	// note is "" when the drain has had an event of its own.
	note string
}

// of returns the drain of a Machine, if it is over.
func (d *finishedDrains) of(key types.NamespacedName, machine types.UID) (finishedDrain, bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	known, ok := d.known[key]
	return known, ok && known.machine == machine
}

func (d *finishedDrains) remember(key types.NamespacedName, drain finishedDrain) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.known == nil {
		d.known = map[types.NamespacedName]finishedDrain{}
	}
	d.known[key] = drain
}

func (d *finishedDrains) forget(key types.NamespacedName) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.known, key)
}

// finishDrain records an event about a drain that is over and has taken long; a quick one is in the last event of the
// Machine.
func (r *Reconciler) finishDrain(s *scope, began time.Time, result drain.Result) {
	if _, known := r.drains.of(s.Key(), s.Original.UID); known {
		return
	}
	finished := finishedDrain{machine: s.Original.UID, began: metav1.NewTime(began), note: s.drainedNote(began, result)}
	const deleting = clusterv1.MachineDeletingCondition
	if s.Now.Sub(began) >= longStep && reasonOf(s.Original.Status.Conditions, deleting) == clusterv1.MachineDeletingDrainingNodeReason {
		r.Recorder.Eventf(
			s.Original,
			nil,
			corev1.EventTypeNormal,
			NodeDrainedEvent,
			"Drain",
			"%s, after %s",
			finished.note,
			duration(finished.began, s.Now),
		)
		finished.note = ""
	}
	s.drainNote = finished.note
	r.drains.remember(s.Key(), finished)
}

// drainedNote describes the result of a drain. How many Pods were evicted is only known when this process began it.
func (s *scope) drainedNote(began time.Time, result drain.Result) string {
	note := "Node " + s.node.Name + " is drained"
	if s.drained.forced.cause != "" {
		note += " by force"
	}
	if s.Now.Sub(began)-result.Age < drainSettling {
		note += " (" + machines.Plural(result.Evicted, "Pod") + " evicted)"
	}
	return note
}

// recallDrain takes over the result of the drain. Its start is written to the status with the next write, so that another
// process can report that there was one.
func (r *Reconciler) recallDrain(s *scope) {
	finished, known := r.drains.of(s.Key(), s.Original.UID)
	if !known {
		return
	}
	s.drainNote = finished.note
	if !s.begun(drainStart) {
		s.begin(drainStart)
		s.Object.Status.Deletion.NodeDrainStartTime = finished.began.Rfc3339Copy()
	}
}

// recordGoneNode records the Node that the Machine was linked with, if that does not exist any more: a Node that is another
// machine's by now stays.
func (s *scope) recordGoneNode() {
	linked := s.Object.Status.NodeRef.Name
	if linked == "" || s.nodeErr != nil || s.unproven() {
		return
	}
	if node, err := s.connection.Node(linked); err == nil && node == nil {
		s.nodeDeleted = linked
	}
}

// deleted describes what was deleted with the Machine, and what stays.
func (r *Reconciler) deleted(s *scope) string {
	var sentences, deleted, stays []string
	switch {
	case s.drainNote != "":
		sentences = append(sentences, s.drainNote)
	case s.begun(drainStart):
		sentences = append(
			sentences,
			fmt.Sprintf(
				"The drain of Node %s began %s ago",
				s.Object.Status.NodeRef.Name,
				duration(s.Object.Status.Deletion.NodeDrainStartTime, s.Now),
			),
		)
	}
	for _, reference := range []*reference{&s.infrastructure, &s.bootstrap} {
		switch {
		case !reference.ref.IsDefined():
		case reference.foreign():
			stays = append(stays, external.Name(reference.ref)+" (something else controls it)")
		case reference.found(),
			apierrors.IsNotFound(reference.err) && (s.seen(reference) || r.observations.has(s.Key(), s.Original.UID, reference.ref)):
			deleted = append(deleted, external.Name(reference.ref))
		}
	}
	switch {
	case s.nodeDeleted != "":
		deleted = append(deleted, "Node "+s.nodeDeleted)
	case s.Object.Status.NodeRef.IsDefined():
		stays = append(stays, "Node "+s.Object.Status.NodeRef.Name)
	}
	if len(deleted) > 0 {
		sentences = append(sentences, "Deleted: "+strings.Join(deleted, ", "))
	}
	if len(stays) > 0 {
		sentences = append(sentences, "Not deleted: "+strings.Join(stays, ", "))
	}
	if begun := s.Original.DeletionTimestamp; begun != nil {
		sentences = append(sentences, fmt.Sprintf("The deletion took %s", duration(*begun, s.Now)))
	}
	return strings.Join(sentences, ". ")
}
