package events

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// Pending are the events of one reconcile, which are recorded once what they are about has been written. The zero value is
// ready for use, by one goroutine.
type Pending struct {
	list []pendingEvent
}

type pendingEvent struct {
	related                         runtime.Object
	eventType, reason, action, note string
}

// Normal adds an event about what was done.
func (p *Pending) Normal(reason, action, format string, args ...any) {
	p.add(nil, corev1.EventTypeNormal, reason, action, format, args...)
}

// Warning adds an event about what needs attention.
func (p *Pending) Warning(reason, action, format string, args ...any) {
	p.add(nil, corev1.EventTypeWarning, reason, action, format, args...)
}

// About adds an event that has to do with a second object.
func (p *Pending) About(related runtime.Object, eventType, reason, action, format string, args ...any) {
	p.add(related, eventType, reason, action, format, args...)
}

func (p *Pending) add(related runtime.Object, eventType, reason, action, format string, args ...any) {
	p.list = append(p.list, pendingEvent{related, eventType, reason, action, fmt.Sprintf(format, args...)})
}

// Empty is true when there are no events.
func (p *Pending) Empty() bool { return len(p.list) == 0 }

// Record records the events on the object, and empties the list.
func (p *Pending) Record(recorder events.EventRecorder, regarding runtime.Object) {
	for _, e := range p.list {
		recorder.Eventf(regarding, e.related, e.eventType, e.reason, e.action, "%s", Cut(e.note))
	}
	p.list = nil
}
