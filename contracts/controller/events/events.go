// Package events keeps the events of controllers within what the API accepts. The API server refuses an event whose note is
// too long, and the recorder drops it.
package events

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"millwright.dev/contracts/controller/conditions"
)

// MaxNote is how many bytes the note of an event of events.k8s.io may have.
const MaxNote = 1024

// Cut shortens a note to what the API accepts, at the border of a character.
func Cut(note string) string { return conditions.Cut(note, MaxNote) }

// Provider is the part of a manager that has recorders.
type Provider interface {
	GetEventRecorder(name string) events.EventRecorder
}

// For returns the manager's recorder for a controller, which cuts the notes of events. Nothing else calls GetEventRecorder; a lint rule
// checks that.
func For(mgr Provider, name string) events.EventRecorder {
	return Within(mgr.GetEventRecorder(name)) //nolint:forbidigo // the one place
}

// Within returns a recorder that cuts the notes of the events that it passes on.
func Within(recorder events.EventRecorder) events.EventRecorder { return within{recorder} }

type within struct{ events.EventRecorder }

// Eventf implements events.EventRecorder.
func (w within) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	w.EventRecorder.Eventf(regarding, related, eventType, reason, action, "%s", Cut(fmt.Sprintf(note, args...)))
}
