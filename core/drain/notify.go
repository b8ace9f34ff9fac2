package drain

import (
	"time"

	"k8s.io/utils/clock"
)

// notifyIfChanged notifies the caller when something has changed since the last Step: at once of the end and of the first
// blocker, and later, so that several changes go together, of mere progress. It is called under mu.
func (n *nodeDrain) notifyIfChanged(now Result) {
	switch {
	case now.sameAs(&n.reported):
	case now.milestone() != n.reported.milestone():
		stopTimer(&n.progress)
		n.notify()
	case n.progress == nil:
		n.progress = n.drainer.options.Clock.AfterFunc(n.drainer.options.ProgressInterval,
			func() { go n.notifyProgress() })
	}
}

func (n *nodeDrain) notifyProgress() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped || n.progress == nil {
		return
	}
	n.progress = nil
	n.notify()
}

// notify is called under mu; Options.Notify must not block and must not call Step itself.
func (n *nodeDrain) notify() { n.drainer.options.Notify(n.key) }

// wakeAt has changed called at a time, instead of at the one of the last call; never when it is zero.
func (n *nodeDrain) wakeAt(next, now time.Time) {
	stopTimer(&n.wake)
	if next.IsZero() || n.stopped {
		return
	}
	// In a goroutine, since a fake clock calls under its own lock.
	n.wake = n.drainer.options.Clock.AfterFunc(max(next.Sub(now), 0), func() { go n.changed() })
}

func stopTimer(timer *clock.Timer) {
	if *timer != nil {
		(*timer).Stop()
		*timer = nil
	}
}
